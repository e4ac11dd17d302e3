//! A small HTTP client that hides nothing: it tells a whole body from one that was cut.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};

pub const OPENAI: &str = "/v1/chat/completions";
pub const RESPONSES: &str = "/v1/responses";
pub const ANTHROPIC: &str = "/v1/messages";
pub const GEMINI: &str = "/v1beta/models/model-1:generateContent";
pub const GEMINI_STREAM: &str = "/v1beta/models/model-1:streamGenerateContent";

/// Longer than any answer that is waited for, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A gateway on a free port, and the pipe that ends it.
pub struct Gateway {
    pub child: Child,
    pub address: String,
}

impl Gateway {
    pub fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gateway"))
            .args(["--port", "0", "--until-stdin-closes"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the gateway starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output is a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line
            .strip_prefix("listening on http://")
            .and_then(|rest| rest.strip_suffix('\n'))
            .unwrap_or_else(|| panic!("not the promised line: {line:?}"));
        Self { address: address.to_owned(), child }
    }
}

/// The one that the tests share; it ends with this process, since its pipe does.
pub fn shared() -> &'static str {
    static SHARED: OnceLock<Gateway> = OnceLock::new();
    &SHARED.get_or_init(Gateway::start).address
}

/// A request as it is used most: one user message.
pub fn prompt(text: &str, stream: bool) -> String {
    turns(OPENAI, &[("user", text)], stream)
}

/// A request of several messages, as the path's provider takes them.
pub fn turns(path: &str, messages: &[(&str, &str)], stream: bool) -> String {
    let said = |(role, text): &(&str, &str)| json!({"role": role, "content": text});
    let parts = |(role, text): &(&str, &str)| json!({"role": role, "parts": [{"text": text}]});
    if path == GEMINI || path == GEMINI_STREAM {
        return json!({"contents": messages.iter().map(parts).collect::<Vec<_>>()}).to_string();
    }
    let field = if path == RESPONSES { "input" } else { "messages" };
    let messages: Vec<_> = messages.iter().map(said).collect();
    json!({"model": "model-1", "max_tokens": 50, "stream": stream, field: messages}).to_string()
}

/// A plain request on a connection of its own.
pub fn ask(path: &str, drill: &str, text: &str) -> Reply {
    post(path, drill, &turns(path, &[("user", text)], false))
}

/// A streaming request on a connection of its own.
pub fn stream(path: &str, drill: &str, text: &str) -> Reply {
    post(path, drill, &turns(path, &[("user", text)], true))
}

pub fn post(path: &str, drill: &str, body: &str) -> Reply {
    let mut line = Line::open();
    line.send("POST", path, &[("x-drill-id", drill)], body.as_bytes());
    line.receive().expect("a response")
}

pub fn get(path: &str) -> Reply {
    let mut line = Line::open();
    line.send("GET", path, &[], b"");
    line.receive().expect("a response")
}

/// A connection.
pub struct Line(BufReader<TcpStream>);

impl Line {
    pub fn open() -> Self {
        let stream = TcpStream::connect(shared()).expect("a connection");
        let line = Self(BufReader::new(stream));
        line.give_up_after(PATIENCE);
        line
    }

    fn give_up_after(&self, silence: Duration) {
        let stream = self.0.get_ref();
        stream.set_read_timeout(Some(silence)).expect("a timeout");
    }

    /// Whether nothing comes for so long.
    pub fn is_silent_for(&mut self, silence: Duration) -> bool {
        self.give_up_after(silence);
        let kind = loop {
            match self.0.fill_buf().map_err(|fault| fault.kind()) {
                // The process was stopped meanwhile, and goes on.
                Err(ErrorKind::Interrupted) => {}
                Err(kind) => break Some(kind),
                Ok(_) => break None,
            }
        };
        self.give_up_after(PATIENCE);
        matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: gateway\r\n").into_bytes();
        for (name, value) in headers {
            request.extend(format!("{name}: {value}\r\n").into_bytes());
        }
        request.extend(format!("content-length: {}\r\n\r\n", body.len()).into_bytes());
        request.extend(body);
        self.0.get_mut().write_all(&request).expect("sent");
    }

    pub fn receive(&mut self) -> io::Result<Reply> {
        self.receive_until(|_| false)
    }

    /// The response, or so much of its stream as is enough.
    pub fn receive_until(&mut self, enough: impl Fn(&Reply) -> bool) -> io::Result<Reply> {
        let head = self.head()?;
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.and_then(|code| code.parse().ok());
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut reply =
            Reply { status: status.ok_or(ErrorKind::InvalidData)?, headers, body: Vec::new(), ending: Ending::Whole };
        if let Err(fault) = self.body(&mut reply, enough) {
            reply.ending = match fault.kind() {
                ErrorKind::UnexpectedEof => Ending::Cut,
                _ => return Err(fault),
            };
        }
        Ok(reply)
    }

    fn head(&mut self) -> io::Result<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(head)
    }

    fn body(&mut self, reply: &mut Reply, enough: impl Fn(&Reply) -> bool) -> io::Result<()> {
        if let Some(length) = reply.header("content-length") {
            let length = length.parse().expect("a length");
            return self.read(length, &mut reply.body);
        }
        while reply.header("transfer-encoding") == Some("chunked") {
            let mut size = String::new();
            self.0.read_line(&mut size)?;
            let size = usize::from_str_radix(size.trim_end(), 16).map_err(|_| ErrorKind::UnexpectedEof)?;
            self.read(size, &mut reply.body)?;
            self.read(2, &mut Vec::new())?;
            if size == 0 {
                break;
            }
            if enough(reply) {
                reply.ending = Ending::Left;
                break;
            }
        }
        Ok(())
    }

    fn read(&mut self, size: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let mut bytes = vec![0; size];
        self.0.read_exact(&mut bytes)?;
        into.extend(bytes);
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
pub enum Ending {
    Whole,
    /// The connection was closed within the body.
    Cut,
    /// It goes on, and the reader has enough.
    Left,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub ending: Ending,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    /// The frames of a stream: each with its event's name (or nothing) and its data, comments as they are.
    pub fn frames(&self) -> Vec<Frame<'_>> {
        let text = self.text();
        assert!(text.is_empty() || text.ends_with("\n\n"), "half a frame");
        text.split_terminator("\n\n").map(Frame::of).collect()
    }

    /// The content that a stream delivered, in any shape.
    pub fn deltas(&self) -> Vec<String> {
        let datas = self.frames().into_iter().filter_map(|frame| frame.json());
        let text = |data: Value| {
            let openai = data["choices"][0]["delta"]["content"].as_str();
            let content = openai
                .or(data["delta"]["text"].as_str())
                .or(data["delta"].as_str())
                .or(data["candidates"][0]["content"]["parts"][0]["text"].as_str())?;
            Some(content.to_owned()).filter(|content| !content.is_empty())
        };
        datas.filter_map(text).collect()
    }
}

#[derive(Debug, PartialEq)]
pub struct Frame<'a> {
    pub event: &'a str,
    pub data: &'a str,
}

impl<'a> Frame<'a> {
    fn of(text: &'a str) -> Self {
        let (event, data) = match text.strip_prefix("event: ") {
            Some(rest) => rest.split_once('\n').expect("data after the event"),
            None => ("", text),
        };
        let data = data.strip_prefix("data: ").unwrap_or(data);
        Self { event, data }
    }

    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(self.data).ok()
    }
}
