//! Answers that are made to measure: a call of a tool, or JSON, that fits the schema in the request.

use serde_json::{Map, Value, json};

use crate::provider::Problem;

/// What an answer consists of, instead of the usual text.
#[derive(Debug, PartialEq)]
pub enum Made {
    Call { name: String, arguments: String },
    Text(String),
}

impl Made {
    /// A call of the tool of this number, counting from 1, in the order in which the request offers them.
    pub fn call(request: &Value, number: usize) -> Result<Self, Problem> {
        let index = number.checked_sub(1);
        let tool = index.map_or(&Value::Null, |index| &request["tools"][index]["function"]);
        let name = tool["name"].as_str().ok_or_else(|| mistake(format!("the request offers no tool {number}")))?;
        let arguments = example(&tool["parameters"], &tool["parameters"]).to_string();
        Ok(Self::Call { name: name.to_owned(), arguments })
    }

    /// JSON of the schema that the request wants its answer to have.
    pub fn json(request: &Value) -> Result<Self, Problem> {
        let schema = &request["response_format"]["json_schema"]["schema"];
        let missing = || mistake("the request has no response_format.json_schema.schema".to_owned());
        schema.as_object().ok_or_else(missing)?;
        Ok(Self::Text(example(schema, schema).to_string()))
    }
}

fn mistake(message: String) -> Problem {
    Problem::Test("gateway_needs_schema", message)
}

/// The same example for the same schema. `root` is where references lead.
fn example(schema: &Value, root: &Value) -> Value {
    if let Some(place) = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#')) {
        return example(root.pointer(place).unwrap_or(&Value::Null), root);
    }
    if let Some(fixed) = schema.get("const").or_else(|| schema["enum"].get(0)) {
        return fixed.clone();
    }
    if let Some(first) = schema["anyOf"].get(0) {
        return example(first, root);
    }
    match schema["type"].as_str() {
        Some("object") => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            Value::Object(fields.map(|(name, field)| (name.clone(), example(field, root))).collect::<Map<_, _>>())
        }
        Some("array") => json!([example(&schema["items"], root)]),
        Some("integer") => json!(7),
        Some("number") => json!(0.5),
        Some("boolean") => json!(true),
        Some("string") => json!("pause"),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Made, example};

    #[test]
    fn an_example_fits_its_schema() {
        let schema = json!({
            "$defs": {"Size": {"enum": ["small", "large"]}},
            "type": "object",
            "properties": {
                "word": {"type": "string"},
                "count": {"type": "integer"},
                "sizes": {"type": "array", "items": {"$ref": "#/$defs/Size"}},
                "maybe": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
            },
        });
        let expected = json!({"word": "pause", "count": 7, "sizes": ["small"], "maybe": true});
        assert_eq!(example(&schema, &schema), expected);
    }

    #[test]
    fn a_tool_is_called_by_its_number() {
        let offer = |name: &str| json!({"function": {"name": name, "parameters": {"type": "object"}}});
        let request = json!({"tools": [offer("one"), offer("two")]});
        let two = Made::Call { name: "two".to_owned(), arguments: "{}".to_owned() };
        assert_eq!(Made::call(&request, 2), Ok(two));
        assert!(Made::call(&request, 0).is_err() && Made::call(&request, 3).is_err());
        assert!(Made::json(&request).is_err());
    }
}
