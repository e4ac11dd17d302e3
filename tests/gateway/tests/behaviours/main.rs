//! The gateway seen from outside, over plain sockets: what goes over the wire is what the tests of a retry rest on.

mod client;
mod counting;
mod made;
mod plain;
mod streams;
mod transport;
