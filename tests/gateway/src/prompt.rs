//! What a request asks for, read from every provider's body into the same few facts.

use serde_json::Value;

/// The parts of a request that an answer depends on.
#[derive(Debug, Default, PartialEq)]
pub struct Prompt {
    pub model: String,
    pub stream: bool,
    /// `OpenAI`'s `stream_options.include_usage`.
    pub include_usage: bool,
    /// The text of every user message, and nothing else: an assistant's turn may quote a marker.
    pub text: String,
    /// The text of a last message that is the assistant's own: the answer goes on from there.
    pub prefill: String,
    /// All of it, for answers that are made to measure.
    pub request: Value,
}

/// Where a body has its parts.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// `messages`, and the rest beside them: `OpenAI` chat, Anthropic.
    Messages,
    /// `input`, a text or a list of messages: `OpenAI` responses.
    Input,
    /// `contents` of `parts`; model and method are in the path: Gemini.
    Contents { model: String, stream: bool },
    /// `messages`; model and method are in the path: Bedrock.
    Converse { model: String, stream: bool },
}

/// Why a body is no request.
#[derive(Debug, PartialEq)]
pub enum Malformed {
    NotJson(String),
    Missing(&'static str),
}

impl Prompt {
    pub fn parse(body: &[u8], form: &Form) -> Result<Self, Malformed> {
        let request: Value = serde_json::from_slice(body).map_err(|fault| Malformed::NotJson(fault.to_string()))?;
        let (model, stream) = if let Form::Contents { model, stream } | Form::Converse { model, stream } = form {
            (model.clone(), *stream)
        } else {
            let model = request["model"].as_str().ok_or(Malformed::Missing("model"))?;
            (model.to_owned(), request["stream"] == true)
        };
        let turns = form.turns(&request)?;
        let said = turns.iter().filter(|turn| turn.users).flat_map(|turn| turn.texts.clone());
        let prefill = turns.last().filter(|turn| !turn.users).map_or_else(String::new, |turn| turn.texts.concat());
        Ok(Self {
            model,
            stream,
            include_usage: request["stream_options"]["include_usage"] == true,
            text: said.collect::<Vec<_>>().join("\n"),
            prefill,
            request,
        })
    }

    /// A stand-in for a tokenizer: steady, never zero, and growing with the prompt.
    pub fn tokens(&self) -> usize {
        self.text.split_whitespace().count() + 7
    }
}

/// One message, the user's or not.
struct Turn<'a> {
    users: bool,
    texts: Vec<&'a str>,
}

impl Form {
    fn turns<'a>(&self, request: &'a Value) -> Result<Vec<Turn<'a>>, Malformed> {
        let (field, content) = match self {
            Form::Messages | Form::Converse { .. } => ("messages", "content"),
            Form::Input => ("input", "content"),
            Form::Contents { .. } => ("contents", "parts"),
        };
        if let (Form::Input, Some(text)) = (self, request[field].as_str()) {
            return Ok(vec![Turn { users: true, texts: vec![text] }]);
        }
        let messages = request[field].as_array().filter(|messages| !messages.is_empty());
        let turn = |message: &'a Value| Turn {
            // Gemini may leave the role out, which is then the user's.
            users: message["role"] == "user" || (field == "contents" && message["role"].is_null()),
            texts: texts(&message[content]),
        };
        Ok(messages.ok_or(Malformed::Missing(field))?.iter().map(turn).collect())
    }
}

/// A content is a string, or a list of parts of which some have text.
fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Malformed, Prompt};

    fn parse(body: &str) -> Result<Prompt, Malformed> {
        Prompt::parse(body.as_bytes(), &Form::Messages)
    }

    #[test]
    fn only_what_users_said_is_read() {
        let prompt = parse(
            r##"{"model": "m", "messages": [
            {"role": "system", "content": "#[500]"},
            {"role": "user", "content": "one #[400]"},
            {"role": "assistant", "content": "you said #[401]"},
            {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "two"}]},
            {"role": "user", "content": null}]}"##,
        )
        .expect("a request");
        assert_eq!(prompt.text, "one #[400]\ntwo");
        assert_eq!(prompt.model, "m");
        assert_eq!(prompt.prefill, "");
        assert!(!prompt.stream && !prompt.include_usage);
    }

    #[test]
    fn a_last_message_of_the_assistants_is_where_the_answer_goes_on() {
        let chat = parse(
            r#"{"model": "m", "messages": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": "Well"}]}"#,
        );
        let contents =
            br#"{"contents": [{"parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"text": "Well"}]}]}"#;
        let form = Form::Contents { model: "m".to_owned(), stream: false };
        let gemini = Prompt::parse(contents, &form);
        let input = br#"{"model": "m", "input": [{"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Well"}]}]}"#;
        let responses = Prompt::parse(input, &Form::Input);
        for prompt in [chat, gemini, responses] {
            let prompt = prompt.expect("a request");
            assert_eq!((prompt.model.as_str(), prompt.text.as_str(), prompt.prefill.as_str()), ("m", "hi", "Well"));
        }
    }

    #[test]
    fn a_stream_may_ask_for_its_usage() {
        let prompt =
            parse(r#"{"model": "m", "messages": [{}], "stream": true, "stream_options": {"include_usage": true}}"#)
                .expect("a request");
        assert!(prompt.stream && prompt.include_usage);
    }

    #[test]
    fn an_input_may_be_a_text() {
        let prompt = Prompt::parse(br#"{"model": "m", "input": "hi", "stream": true}"#, &Form::Input);
        let prompt = prompt.expect("a request");
        assert_eq!(prompt.text, "hi");
        assert!(prompt.stream);
    }

    #[test]
    fn a_body_that_is_no_request() {
        let fault = |body: &str| parse(body).expect_err("no request");
        assert!(matches!(fault("{"), Malformed::NotJson(_)));
        assert!(matches!(fault(""), Malformed::NotJson(_)));
        assert_eq!(fault("[]"), Malformed::Missing("model"));
        assert_eq!(fault(r#"{"model": "m"}"#), Malformed::Missing("messages"));
        let empty = r#"{"model": "m", "messages": []}"#;
        assert_eq!(fault(empty), Malformed::Missing("messages"));
    }
}
