//! The fault gateway: a model server on loopback that misbehaves on request.
//!
//! It speaks the shapes of `OpenAI` (`POST /v1/chat/completions`, also as Azure has it, `POST /v1/responses`), Anthropic
//! (`POST /v1/messages`), Gemini (`POST /v1beta/models/MODEL:generateContent`, `:streamGenerateContent`; `/v1` will do)
//! and Bedrock (`POST /model/MODEL/converse`, `/converse-stream`, `/invoke`, `/invoke-with-response-stream`), plain and
//! streaming. A marker in the text of a user's message says what happens; the last one wins, none means `#[ok]`. Where
//! the last message is the assistant's own, with the beginning of the answer in it, the answer goes on from there.
//!
//! `/any` is for clients that are no model's: it takes every method, and the marker from its query (`?q=%23[503,ok]`,
//! with `&stream=true` for a stream), or else from its body, whatever that is. It answers in the shape of `OpenAI`.
//!
//! ```text
//! gateway [--port N] [--until-stdin-closes]
//! ```
//!
//! It binds 127.0.0.1 (port 0, the default, takes a free one) and prints one line, `listening on
//! http://127.0.0.1:PORT`. With `--until-stdin-closes` it leaves when its parent does.
//!
//! | marker | what the caller meets |
//! | --- | --- |
//! | `#[ok]` | an answer |
//! | `#[400]` ... `#[599]` | that status, with the provider's own error body |
//! | `#[429x2]` | that status so many times, then `ok` |
//! | `#[slow]`, `#[slow=MS]` | 5 s, or MS, of silence, then `ok` |
//! | `#[hold=N]` | silence until its drill has made N requests in all, then `ok` |
//! | `#[reset]` | the connection is reset (RST) |
//! | `#[quota]` | no money left: 429 `insufficient_quota`, or 402 `billing_error` |
//! | `#[daily]` | a day's allowance is used up: a 429 that says so in its message, or in a reset header |
//! | `#[context]` | the prompt is too long |
//! | `#[filter]` | a 200 cut short by a content filter (`content_filter`, `refusal`, `SAFETY`) |
//! | `#[truncated]` | a 200 cut short at the limit of tokens (`length`, `max_tokens`, `MAX_TOKENS`) |
//! | `#[tool=N]` | a call of the Nth tool that the request offers, with arguments that fit it (chat completions) |
//! | `#[json]` | JSON of the schema in the request's `response_format` (chat completions) |
//! | `#[html]` | a proxy's 502, in HTML |
//! | `#[empty]` | a 200 without content |
//! | `#[cut=N]` | a 200 that announces its length, and ends after N bytes |
//! | `#[redirect]` | 307 to the same address once, then `ok` |
//! | `#[retry-after=S]` | 429 with `Retry-After: S` (verbatim) once, then `ok` |
//! | `#[retry-date=S]` | 429 with a `Retry-After` date S seconds past its `Date` once, then `ok` |
//! | `#[retry-ms=N]` | 429 with `retry-after-ms: N` once, then `ok` |
//! | `#[sse-whole=N]` | a whole answer of N content deltas, with no pause between them |
//! | `#[sse-cut=N]` | N content deltas, then the connection breaks |
//! | `#[sse-eof=N]` | N content deltas, then the body ends as if it were whole, without a finish frame |
//! | `#[sse-void]` | a stream without any event |
//! | `#[sse-error=N]` | N content deltas, then an error event inside the 200 |
//! | `#[sse-error-text=N]` | N content deltas, then prose where an event should be |
//! | `#[sse-error-raw=N]` | N content deltas, then the error's JSON, not even as an event |
//! | `#[sse-again=N]` | N content deltas, then the stream starts once more, and goes to its end |
//! | `#[sse-stall=N]` | N content deltas, then nothing; the connection stays open |
//! | `#[sse-idle=N]` | N content deltas, then only keep-alives, 100 ms apart, without end |
//! | `#[sse-pings=N]` | N keep-alives, 100 ms apart, before the first content, then `ok` |
//! | `#[sse-first=MS]` | MS of silence before the first content, then `ok` |
//! | `#[sse-slow=MS]` | `ok`, with MS between deltas |
//! | `#[500,429x2,ok]` | a list, one entry per request; the last one repeats |
//! | `#[ok,ok,slow=300,again]` | a list that starts over: every third answer is slow |
//!
//! An entry that ends in "then `ok`" goes on to the next entry inside a list, and to `ok` at its end. `sse-` markers
//! need `"stream": true`. A marker that is none of these, or one that is never closed, is answered with 400
//! `gateway_unknown_marker`: the test is wrong, not the code under test.
//!
//! Lists and counts advance per drill (the header `x-drill-id`, else `default`) and marker. `GET /__stats` tells what
//! every drill asked for, `POST /__reset` forgets it; `?drill=ID` narrows both to one.

mod anthropic;
mod bedrock;
mod behaviour;
mod body;
mod connection;
mod cors;
mod gemini;
mod made;
mod marker;
mod openai;
mod prompt;
mod provider;
mod respond;
mod responses;
mod serve;
mod stats;

use std::io::{self, Write};
use std::process::{ExitCode, exit};
use std::thread;

use tokio::net::TcpListener;

const USAGE: &str = "usage: gateway [--port N] [--until-stdin-closes]";

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(fault) => {
            eprintln!("gateway: {fault}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if arguments.until_stdin_closes {
        leave_when_stdin_closes();
    }
    match run(arguments.port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("gateway: {fault}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct Arguments {
    port: u16,
    until_stdin_closes: bool,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut arguments = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--until-stdin-closes" => arguments.until_stdin_closes = true,
                "--port" => {
                    let port = words.next().ok_or("--port needs a number")?;
                    arguments.port = port.parse().map_err(|_| format!("--port {port}: not a port"))?;
                }
                _ => return Err(format!("unknown argument {word}")),
            }
        }
        Ok(arguments)
    }
}

/// One thread carries everything: a test's load is small, and order then never depends on a scheduler.
fn run(port: u16) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        announce(listener.local_addr()?.port())?;
        connection::accept_all(listener).await
    })
}

fn announce(port: u16) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on http://127.0.0.1:{port}")?;
    out.flush()
}

/// A parent that is killed cannot stop its gateway, but its end of the pipe closes all the same.
fn leave_when_stdin_closes() {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        exit(0);
    });
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn arguments() {
        assert_eq!(parse(""), Ok(Arguments::default()));
        let both = Arguments { port: 8123, until_stdin_closes: true };
        assert_eq!(parse("--until-stdin-closes --port 8123"), Ok(both));
        for wrong in ["--port", "--port 65536", "--port x", "--verbose", "8080"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
