//! What an error's type name, or its network code, says when no answer of the server's says it better.
//!
//! Where the names are from:
//!
//! - Provoked: openai 3.57, anthropic 2.14, google-genai 3.6, httpx 0.28, httpx2 2.16, requests 2.34, urllib3 2.8,
//!   aiohttp 3.14, botocore 1.44 and urllib were made to fail against a loopback server (refused, connect timed out,
//!   reset, closed without an answer, cut inside a body, slow, unresolved, TLS against plain text), and the names along
//!   the cause chain were written down.
//! - Listed, from the classes that those packages, h11 0.16, anyio 4.16, trio 0.35, google-api-core 2.44, google-auth
//!   2.63, pydantic 2.14, jsonschema 4.26, msgspec, websockets 17, langgraph 1.2, langchain-core 1.8, litellm 1.110,
//!   pydantic-ai 2.68 and the standard library define.
//! - Read, in JavaScript: names and codes in openai 6.49, @anthropic-ai/sdk 1.14, undici 7.30, axios 1.21, node-fetch
//!   3.3, got 14.6, zod 4.6, @langchain/langgraph 1.7, the AWS SDK 3.1175 and Node 20.
//!
//! Not here: types whose meaning is their status or code (`openai.RateLimitError`, everything of gRPC and of botocore's
//! `ClientError`), and `AbortError` and its like, which only the driver can tell from its own timeouts.
//!
//! # How to match
//!
//! Names come outermost first, each exception's own type before its bases. For each name the rows are tried from top to
//! bottom. `a.B` is any `B` inside the package `a` (`botocore.ReadTimeoutError` is
//! `botocore.exceptions.ReadTimeoutError`); a bare `B` is any type of that name.
//!
//! A row is *firm* when the type alone says what happened, and *weak* when it only says where to look further:
//! `openai.APIConnectionError` wraps whatever broke below it, and `requests.HTTPError` is an `OSError` though it has a
//! status. Hence
//!
//! 1. the first firm row decides kind and `sent`;
//! 2. else provider code and status decide, as far as they say anything (400 and up);
//! 3. else the network code decides the kind, where [`OS_CODES`] has it;
//! 4. else the first weak row decides the kind.
//!
//! In 3 and 4 the request was not sent if the code's row or *any* weak row says so, because a phase (`ConnectError`)
//! may stand below a wrapper (`APIConnectionError`) and above a code that knows no phase (`ETIMEDOUT`).
//!
//! The first firm row, and not any row, decides `sent`: a read timeout of a backup that was tried because the primary
//! refused the connection was sent, whatever stands further down. For the same reason a group of several failures
//! (a name ending in `ExceptionGroup` before any row) may have executed.
//!
//! # Reset or cut
//!
//! A connection that breaks before an answer is `transport`; one that breaks inside the body of an answer is
//! `stream_interrupted`: the server had begun. httpx raises `RemoteProtocolError` for both, and below it h11's error
//! for the second only, so the first is weak and the second firm.

use crate::failure::Kind;
use crate::words::{Packer, Words, packed};

/// What a type of error or a network code means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Meaning {
    pub kind: Kind,
    /// Whether the request can have reached the server.
    pub sent: bool,
    /// Decides only where nothing else does.
    pub weak: bool,
}

/// What the type of this name means, where `is` says whether it has a name: `package.Type`, or a bare `Type`.
pub(crate) fn type_that(is: impl Fn(&str) -> bool) -> Option<Meaning> {
    const WORDS: Words = packed!(rows(TYPES));
    WORDS.iter().find(|(_, name)| is(name)).map(|(number, _)| Meaning::of(number))
}

/// What a network code means.
pub(crate) fn os_code(code: &str) -> Option<Meaning> {
    const WORDS: Words = packed!(rows(OS_CODES));
    WORDS.iter().find(|(_, known)| *known == code).map(|(number, _)| Meaning::of(number))
}

const fn rows(rows: &[(&str, Meaning)]) -> Packer {
    let mut out = Packer::new();
    let mut at = 0;
    while at < rows.len() {
        let Meaning { kind, sent, weak } = rows[at].1;
        out = out.word(kind as usize | (sent as usize) << 5 | (weak as usize) << 6, rows[at].0);
        at += 1;
    }
    out
}

impl Meaning {
    const fn of(number: u8) -> Meaning {
        Meaning { kind: Kind::numbered(number & 31), sent: number & 32 != 0, weak: number & 64 != 0 }
    }
}

type Row = (&'static str, Meaning);

/// It says what happened, and the request may have been executed.
const fn firm(name: &'static str, kind: Kind) -> Row {
    (name, Meaning { kind, sent: true, weak: false })
}

/// It says what happened, and that nothing was sent.
const fn unsent(name: &'static str, kind: Kind) -> Row {
    (name, Meaning { kind, sent: false, weak: false })
}

/// A wrapper or a base: look further.
const fn weak(name: &'static str, kind: Kind) -> Row {
    (name, Meaning { kind, sent: true, weak: true })
}

/// As `weak`, of the phase before anything is sent.
const fn weak_unsent(name: &'static str, kind: Kind) -> Row {
    (name, Meaning { kind, sent: false, weak: true })
}

const TYPES: &[Row] = &[
    // Our own, raised by an inner call: what it decided is not for an outer one to revive, and its own attempts
    // may have executed.
    firm("reprieve.CallCancelled", Kind::Cancelled),
    firm("reprieve.BudgetExhausted", Kind::BudgetExhausted),
    firm("reprieve.CircuitOpen", Kind::CircuitOpen),
    firm("reprieve.CoolingDown", Kind::CircuitOpen),
    firm("reprieve.Limited", Kind::Shed),
    firm("reprieve.Shed", Kind::Shed),
    unsent("reprieve.DeadlineExceeded", Kind::Timeout),
    firm("reprieve.BadOutput", Kind::InvalidOutput),
    // How a framework leaves a function: LangGraph, in Python and JavaScript, to wait for a person, Celery to run the task
    // again. No failure.
    firm("GraphInterrupt", Kind::Cancelled),
    firm("NodeInterrupt", Kind::Cancelled),
    firm("ParentCommand", Kind::Cancelled),
    firm("GraphDrained", Kind::Cancelled),
    firm("celery.Retry", Kind::Cancelled),
    firm("celery.Ignore", Kind::Cancelled),
    firm("celery.Reject", Kind::Cancelled),
    // A worker's soft limit, raised in the middle of a task: it has until the hard one to leave, not to try again.
    firm("billiard.SoftTimeLimitExceeded", Kind::Cancelled),
    // Python's standard library. OSError is also every failure of a local file, which no retry of a call repairs.
    unsent("builtins.ConnectionRefusedError", Kind::Transport),
    firm("http.IncompleteRead", Kind::StreamInterrupted),
    firm("http.BadStatusLine", Kind::Transport),
    firm("http.LineTooLong", Kind::Transport),
    unsent("http.InvalidURL", Kind::BadRequest),
    firm("builtins.ConnectionResetError", Kind::Transport),
    firm("builtins.ConnectionAbortedError", Kind::Transport),
    firm("builtins.BrokenPipeError", Kind::Transport),
    unsent("socket.gaierror", Kind::Transport),
    unsent("socket.herror", Kind::Transport),
    unsent("ssl.SSLCertVerificationError", Kind::Unknown),
    weak("ssl.SSLError", Kind::Transport),
    firm("builtins.FileNotFoundError", Kind::Unknown),
    firm("builtins.FileExistsError", Kind::Unknown),
    firm("builtins.PermissionError", Kind::Unknown),
    firm("builtins.IsADirectoryError", Kind::Unknown),
    firm("builtins.NotADirectoryError", Kind::Unknown),
    firm("builtins.ChildProcessError", Kind::Unknown),
    firm("builtins.ProcessLookupError", Kind::Unknown),
    firm("asyncio.IncompleteReadError", Kind::StreamInterrupted),
    firm("concurrent.CancelledError", Kind::Cancelled),
    firm("subprocess.TimeoutExpired", Kind::Timeout),
    firm("urllib.ContentTooShortError", Kind::StreamInterrupted),
    weak("urllib.URLError", Kind::Transport),
    firm("json.JSONDecodeError", Kind::ParseError),
    firm("xml.ParseError", Kind::ParseError),
    firm("builtins.SyntaxError", Kind::Unknown), // a broken module, and not JavaScript's, at the end
    // openai, anthropic and the SDKs generated like them: Python and JavaScript.
    weak("APITimeoutError", Kind::Timeout),
    weak("APIConnectionTimeoutError", Kind::Timeout),
    weak("APIConnectionError", Kind::Transport),
    weak("APIResponseValidationError", Kind::SchemaInvalid),
    firm("openai.LengthFinishReasonError", Kind::Truncated),
    firm("openai.ContentFilterFinishReasonError", Kind::ContentFiltered),
    firm("openai.WebSocketConnectionClosedError", Kind::StreamInterrupted),
    weak_unsent("openai.SubjectTokenProviderError", Kind::AuthFailed),
    unsent("anthropic.CredentialsError", Kind::AuthFailed),
    unsent("anthropic.WorkloadIdentityError", Kind::AuthFailed),
    // httpx, httpx2 and what they stand on.
    unsent("httpx.ConnectTimeout", Kind::Timeout),
    unsent("httpx.PoolTimeout", Kind::Timeout),
    firm("httpx.ReadTimeout", Kind::Timeout),
    firm("httpx.WriteTimeout", Kind::Timeout),
    weak("httpx.TimeoutException", Kind::Timeout),
    weak_unsent("httpx.ConnectError", Kind::Transport),
    weak_unsent("httpx.ProxyError", Kind::Transport),
    firm("httpx.ReadError", Kind::Transport),
    firm("httpx.WriteError", Kind::Transport),
    firm("httpx.CloseError", Kind::Transport),
    weak("httpx.RemoteProtocolError", Kind::Transport),
    unsent("httpx.LocalProtocolError", Kind::BadRequest),
    unsent("httpx.UnsupportedProtocol", Kind::BadRequest),
    unsent("httpx.InvalidURL", Kind::BadRequest),
    firm("httpx.DecodingError", Kind::ParseError),
    weak("httpx.TransportError", Kind::Transport),
    unsent("httpx2.ConnectTimeout", Kind::Timeout),
    unsent("httpx2.PoolTimeout", Kind::Timeout),
    firm("httpx2.ReadTimeout", Kind::Timeout),
    firm("httpx2.WriteTimeout", Kind::Timeout),
    weak("httpx2.TimeoutException", Kind::Timeout),
    weak_unsent("httpx2.ConnectError", Kind::Transport),
    weak_unsent("httpx2.ProxyError", Kind::Transport),
    firm("httpx2.ReadError", Kind::Transport),
    firm("httpx2.WriteError", Kind::Transport),
    firm("httpx2.CloseError", Kind::Transport),
    weak("httpx2.RemoteProtocolError", Kind::Transport),
    unsent("httpx2.LocalProtocolError", Kind::BadRequest),
    unsent("httpx2.UnsupportedProtocol", Kind::BadRequest),
    unsent("httpx2.InvalidURL", Kind::BadRequest),
    firm("httpx2.DecodingError", Kind::ParseError),
    firm("httpx2.SSEError", Kind::ParseError),
    weak("httpx2.TransportError", Kind::Transport),
    firm("h11.RemoteProtocolError", Kind::StreamInterrupted),
    weak("anyio.BrokenResourceError", Kind::Transport),
    weak("anyio.EndOfStream", Kind::Transport),
    weak("trio.BrokenResourceError", Kind::Transport),
    firm("trio.TooSlowError", Kind::Timeout),
    // requests and urllib3.
    unsent("requests.ConnectTimeout", Kind::Timeout),
    firm("requests.ReadTimeout", Kind::Timeout),
    weak("requests.Timeout", Kind::Timeout),
    firm("requests.ChunkedEncodingError", Kind::StreamInterrupted),
    weak_unsent("requests.ProxyError", Kind::Transport),
    weak("requests.SSLError", Kind::Transport),
    weak("requests.ConnectionError", Kind::Transport),
    unsent("requests.MissingSchema", Kind::BadRequest),
    unsent("requests.InvalidSchema", Kind::BadRequest),
    unsent("requests.InvalidURL", Kind::BadRequest),
    unsent("requests.InvalidHeader", Kind::BadRequest),
    unsent("requests.URLRequired", Kind::BadRequest),
    firm("requests.JSONDecodeError", Kind::ParseError),
    firm("requests.ContentDecodingError", Kind::ParseError),
    weak("requests.RequestException", Kind::Unknown), // is an OSError
    unsent("urllib3.NewConnectionError", Kind::Transport),
    unsent("urllib3.ConnectTimeoutError", Kind::Timeout),
    firm("urllib3.ReadTimeoutError", Kind::Timeout),
    unsent("urllib3.EmptyPoolError", Kind::Timeout),
    unsent("urllib3.FullPoolError", Kind::Timeout),
    unsent("urllib3.ClosedPoolError", Kind::Transport),
    firm("urllib3.IncompleteRead", Kind::StreamInterrupted),
    firm("urllib3.InvalidChunkLength", Kind::StreamInterrupted),
    firm("urllib3.DecodeError", Kind::ParseError),
    unsent("urllib3.LocationValueError", Kind::BadRequest),
    weak_unsent("urllib3.ProxyError", Kind::Transport),
    weak("urllib3.SSLError", Kind::Transport),
    weak("urllib3.ProtocolError", Kind::Transport),
    weak("urllib3.MaxRetryError", Kind::Transport),
    // aiohttp.
    unsent("aiohttp.ConnectionTimeoutError", Kind::Timeout),
    firm("aiohttp.ServerTimeoutError", Kind::Timeout),
    firm("aiohttp.ServerDisconnectedError", Kind::Transport),
    unsent("aiohttp.ServerFingerprintMismatch", Kind::Unknown),
    unsent("aiohttp.ClientConnectorCertificateError", Kind::Unknown),
    unsent("aiohttp.ClientConnectorDNSError", Kind::Transport),
    weak_unsent("aiohttp.ClientConnectorError", Kind::Transport),
    firm("aiohttp.ClientConnectionResetError", Kind::Transport),
    weak("aiohttp.ClientConnectionError", Kind::Transport),
    firm("aiohttp.ClientPayloadError", Kind::StreamInterrupted),
    firm("aiohttp.UploadAbortedError", Kind::Transport),
    weak("aiohttp.ContentTypeError", Kind::ParseError), // carries the status of the answer
    unsent("aiohttp.InvalidURL", Kind::BadRequest),
    unsent("aiohttp.NonHttpUrlClientError", Kind::BadRequest),
    // botocore.
    unsent("botocore.EndpointConnectionError", Kind::Transport),
    unsent("botocore.ConnectTimeoutError", Kind::Timeout),
    unsent("botocore.ProxyConnectionError", Kind::Transport),
    firm("botocore.ReadTimeoutError", Kind::Timeout),
    weak("botocore.ConnectionClosedError", Kind::Transport),
    firm("botocore.ResponseStreamingError", Kind::StreamInterrupted),
    firm("botocore.IncompleteReadError", Kind::StreamInterrupted),
    weak("botocore.SSLError", Kind::Transport),
    weak("botocore.HTTPClientError", Kind::Transport),
    unsent("botocore.NoCredentialsError", Kind::AuthFailed),
    unsent("botocore.PartialCredentialsError", Kind::AuthFailed),
    unsent("botocore.CredentialRetrievalError", Kind::AuthFailed),
    unsent("botocore.NoAuthTokenError", Kind::AuthFailed),
    unsent("botocore.UnauthorizedSSOTokenError", Kind::AuthFailed),
    unsent("botocore.ParamValidationError", Kind::BadRequest),
    unsent("botocore.ValidationError", Kind::BadRequest),
    unsent("botocore.NoRegionError", Kind::BadRequest),
    // Google.
    weak("google.RetryError", Kind::Timeout), // its own clock ran out; the last failure is below
    unsent("google.DefaultCredentialsError", Kind::AuthFailed),
    unsent("google.RefreshError", Kind::AuthFailed),
    weak_unsent("google.TransportError", Kind::Transport),
    firm("google.UnknownApiResponseError", Kind::ParseError),
    firm("google.ContinuationInterruptedError", Kind::StreamInterrupted),
    // Other Python.
    firm("websockets.ConnectionClosed", Kind::StreamInterrupted),
    firm("pydantic_core.ValidationError", Kind::SchemaInvalid),
    firm("pydantic.ValidationError", Kind::SchemaInvalid),
    firm("jsonschema.ValidationError", Kind::SchemaInvalid),
    firm("msgspec.ValidationError", Kind::SchemaInvalid),
    firm("msgspec.DecodeError", Kind::ParseError),
    // Frameworks for models. Most of what they raise has the answer of a server in it, or below it.
    firm("langchain_core.OutputParserException", Kind::ParseError),
    firm("litellm.ContextWindowExceededError", Kind::ContextLengthExceeded),
    firm("litellm.ContentPolicyViolationError", Kind::ContentFiltered),
    firm("litellm.BudgetExceededError", Kind::BudgetExhausted),
    firm("pydantic_ai.ContentFilterError", Kind::ContentFiltered),
    firm("pydantic_ai.UsageLimitExceeded", Kind::BudgetExhausted),
    weak("pydantic_ai.ModelRequestTimeout", Kind::Timeout),
    weak("pydantic_ai.ModelTimeoutError", Kind::Timeout),
    weak("pydantic_ai.ModelConnectionError", Kind::Transport),
    // JavaScript, whose names have no package. What undici, Node and axios raise is told by its code.
    firm("ZodError", Kind::SchemaInvalid),
    firm("$ZodError", Kind::SchemaInvalid),
    firm("HTTPParserError", Kind::Transport),
    weak("FetchError", Kind::Transport),
    weak("SyntaxError", Kind::ParseError), // JSON.parse
    unsent("CredentialsProviderError", Kind::AuthFailed),
    // What is left of any language: Python's and the DOM's TimeoutError, and the bases of network errors.
    weak("TimeoutError", Kind::Timeout),
    weak("builtins.ConnectionError", Kind::Transport),
    weak("builtins.OSError", Kind::Transport),
];

const OS_CODES: &[Row] = &[
    // POSIX, as Python and Node name them.
    unsent("ECONNREFUSED", Kind::Transport),
    firm("ECONNRESET", Kind::Transport),
    firm("ECONNABORTED", Kind::Transport),
    firm("EPIPE", Kind::Transport),
    firm("ETIMEDOUT", Kind::Timeout), // of a connect, or of a connection whose peer is gone: the code does not say
    unsent("EHOSTUNREACH", Kind::Transport),
    unsent("EHOSTDOWN", Kind::Transport),
    unsent("ENETUNREACH", Kind::Transport),
    firm("ENETDOWN", Kind::Transport),
    firm("ENETRESET", Kind::Transport),
    unsent("EADDRNOTAVAIL", Kind::Transport),
    unsent("EADDRINUSE", Kind::Transport),
    unsent("EMFILE", Kind::Transport),
    unsent("ENFILE", Kind::Transport),
    firm("ENOTCONN", Kind::Transport),
    firm("EPROTO", Kind::Transport),
    // Names that did not resolve.
    unsent("ENOTFOUND", Kind::Transport),
    unsent("EAI_AGAIN", Kind::Transport),
    unsent("EAI_FAIL", Kind::Transport),
    unsent("EAI_NODATA", Kind::Transport),
    unsent("EAI_NONAME", Kind::Transport),
    unsent("ENODATA", Kind::Transport),
    // Local files and limits: nothing that a network does.
    firm("ENOENT", Kind::Unknown),
    firm("EACCES", Kind::Unknown),
    firm("EPERM", Kind::Unknown),
    firm("EEXIST", Kind::Unknown),
    firm("EISDIR", Kind::Unknown),
    firm("ENOTDIR", Kind::Unknown),
    firm("ENOSPC", Kind::Unknown),
    firm("EROFS", Kind::Unknown),
    firm("EIO", Kind::Unknown),
    firm("EINVAL", Kind::Unknown),
    firm("EBADF", Kind::Unknown),
    // undici, which is Node's fetch.
    unsent("UND_ERR_CONNECT_TIMEOUT", Kind::Timeout),
    firm("UND_ERR_HEADERS_TIMEOUT", Kind::Timeout),
    firm("UND_ERR_BODY_TIMEOUT", Kind::Timeout),
    firm("UND_ERR_SOCKET", Kind::Transport),
    firm("UND_ERR_RES_CONTENT_LENGTH_MISMATCH", Kind::StreamInterrupted),
    firm("UND_ERR_DESTROYED", Kind::Transport),
    unsent("UND_ERR_CLOSED", Kind::Transport),
    unsent("UND_ERR_PRX_TLS", Kind::Transport),
    unsent("UND_ERR_SOCKS5", Kind::Transport),
    unsent("UND_ERR_BPL_MISSING_UPSTREAM", Kind::Transport),
    unsent("UND_ERR_INVALID_ARG", Kind::BadRequest),
    unsent("UND_ERR_NOT_SUPPORTED", Kind::BadRequest),
    unsent("UND_ERR_REQ_CONTENT_LENGTH_MISMATCH", Kind::BadRequest),
    // Node's own, axios, got, node-fetch.
    firm("ERR_NETWORK", Kind::Transport),
    firm("ERR_SOCKET_CLOSED", Kind::Transport),
    unsent("ERR_SOCKET_CONNECTION_TIMEOUT", Kind::Timeout),
    firm("ERR_STREAM_PREMATURE_CLOSE", Kind::StreamInterrupted),
    firm("ERR_HTTP2_STREAM_ERROR", Kind::Transport),
    firm("ERR_HTTP2_SESSION_ERROR", Kind::Transport),
    firm("ERR_HTTP2_GOAWAY_SESSION", Kind::Transport),
    firm("ERR_BODY_PARSE_FAILURE", Kind::ParseError),
    unsent("ERR_INVALID_URL", Kind::BadRequest),
    // Certificates: OpenSSL's reasons as Node and Python give them. The handshake came first, so nothing was sent; a
    // person must look.
    unsent("CERTIFICATE_VERIFY_FAILED", Kind::Unknown),
    unsent("CERT_HAS_EXPIRED", Kind::Unknown),
    unsent("CERT_NOT_YET_VALID", Kind::Unknown),
    unsent("CERT_REVOKED", Kind::Unknown),
    unsent("CERT_UNTRUSTED", Kind::Unknown),
    unsent("CERT_REJECTED", Kind::Unknown),
    unsent("DEPTH_ZERO_SELF_SIGNED_CERT", Kind::Unknown),
    unsent("SELF_SIGNED_CERT_IN_CHAIN", Kind::Unknown),
    unsent("UNABLE_TO_GET_ISSUER_CERT", Kind::Unknown),
    unsent("UNABLE_TO_GET_ISSUER_CERT_LOCALLY", Kind::Unknown),
    unsent("UNABLE_TO_VERIFY_LEAF_SIGNATURE", Kind::Unknown),
    unsent("ERR_TLS_CERT_ALTNAME_INVALID", Kind::Unknown),
    unsent("WRONG_VERSION_NUMBER", Kind::Unknown),
    unsent("ERR_SSL_WRONG_VERSION_NUMBER", Kind::Unknown),
];
