//! What a request asks for, read the same way from both providers' bodies.

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
}

/// Why a body is no request.
#[derive(Debug, PartialEq)]
pub enum Malformed {
    NotJson(String),
    Missing(&'static str),
}

impl Prompt {
    pub fn parse(body: &[u8]) -> Result<Self, Malformed> {
        let request: Value = serde_json::from_slice(body).map_err(|fault| Malformed::NotJson(fault.to_string()))?;
        let model = request["model"].as_str().ok_or(Malformed::Missing("model"))?;
        let messages = request["messages"]
            .as_array()
            .filter(|messages| !messages.is_empty())
            .ok_or(Malformed::Missing("messages"))?;
        let texts: Vec<_> = messages
            .iter()
            .filter(|message| message["role"] == "user")
            .flat_map(|message| texts(&message["content"]))
            .collect();
        Ok(Self {
            model: model.to_owned(),
            stream: request["stream"] == true,
            include_usage: request["stream_options"]["include_usage"] == true,
            text: texts.join("\n"),
        })
    }

    /// A stand-in for a tokenizer: steady, never zero, and growing with the prompt.
    pub fn tokens(&self) -> usize {
        self.text.split_whitespace().count() + 7
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
    use super::{Malformed, Prompt};

    #[test]
    fn only_what_users_said_is_read() {
        let body = br##"{"model": "m", "messages": [
            {"role": "system", "content": "#[500]"},
            {"role": "user", "content": "one #[400]"},
            {"role": "assistant", "content": "you said #[401]"},
            {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "two"}]},
            {"role": "user", "content": null}]}"##;
        let prompt = Prompt::parse(body).expect("a request");
        assert_eq!(prompt.text, "one #[400]\ntwo");
        assert_eq!(prompt.model, "m");
        assert!(!prompt.stream && !prompt.include_usage);
    }

    #[test]
    fn a_stream_may_ask_for_its_usage() {
        let body = br#"{"model": "m", "messages": [{}], "stream": true,
            "stream_options": {"include_usage": true}}"#;
        let prompt = Prompt::parse(body).expect("a request");
        assert!(prompt.stream && prompt.include_usage);
    }

    #[test]
    fn a_body_that_is_no_request() {
        let fault = |body: &str| Prompt::parse(body.as_bytes()).expect_err("no request");
        assert!(matches!(fault("{"), Malformed::NotJson(_)));
        assert!(matches!(fault(""), Malformed::NotJson(_)));
        assert_eq!(fault("[]"), Malformed::Missing("model"));
        assert_eq!(fault(r#"{"model": "m"}"#), Malformed::Missing("messages"));
        let empty = r#"{"model": "m", "messages": []}"#;
        assert_eq!(fault(empty), Malformed::Missing("messages"));
    }
}
