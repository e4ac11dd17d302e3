//! Connections: kept alive, and reset where a marker asks for it.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::respond::Reset;
use crate::serve::Gateway;

/// Serves whoever connects, for as long as the process lives.
pub async fn accept_all(listener: TcpListener) -> io::Result<()> {
    let gateway = Arc::new(Gateway::new());
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, Arc::clone(&gateway)))),
            // Out of descriptors, or the peer has gone already: neither is a reason to leave the others.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, gateway: Arc<Gateway>) {
    // Frames are small and each must leave at once.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| gateway.serve(request));
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let Err(fault) = (&mut connection).await else {
        return;
    };
    if fault.source().is_some_and(<dyn Error>::is::<Reset>) {
        let stream = connection.into_parts().io.into_inner();
        // With no time to linger, closing sends RST instead of FIN.
        let _ = stream.set_zero_linger();
    }
}
