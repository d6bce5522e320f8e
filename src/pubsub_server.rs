//! An embedded Pub/Sub server: for `demo`, for tests with faults, for load. Never for production: nothing is on disk.
//!
//! It speaks Google's gRPC API well enough for Google's clients: leases with ack deadlines and redelivery, retry policy,
//! dead letters, exactly-once results, ordering keys, flow control. What it can not do (push, filters, schemas,
//! snapshots) it refuses by name. The logic is in pure state machines (`subscription`, `broker`); the services
//! around them only check and translate.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{net::TcpListener, task::JoinHandle, time};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Status, service::Routes, transport::Server};

mod admin;
mod answers;
mod broker;
mod checks;
mod faults;
mod message;
mod names;
pub mod proto;
mod publisher;
mod rest;
mod shared;
mod streaming;
mod subscriber;
mod subscription;

pub use self::{
    admin::Admin,
    faults::{Faults, Method, ModAck},
    subscription::Counts,
};
use self::{
    proto::{PublisherServer, SubscriberServer},
    publisher::PublisherApi,
    shared::Shared,
    subscriber::SubscriberApi,
};

/// A request may be this large on the wire: 10 MB of messages and what is around them.
const MAX_WIRE_BYTES: usize = 16 << 20;
/// Connections that do not end by themselves are left behind after this.
const GRACE: Duration = Duration::from_secs(5);

/// How a server behaves.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Memory for unacknowledged messages; a Publish beyond it is refused with `RESOURCE_EXHAUSTED`.
    pub max_bytes: usize,
    /// When the connection under a stream breaks, what it held is delivered again at once. Google lets the leases run
    /// out, and so does this server when it is off. A stream that was closed in order keeps its leases either way:
    /// its client may still be working on them.
    pub release_on_disconnect: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_bytes: 512 << 20, release_on_disconnect: true }
    }
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[error("can not listen on {address}")]
pub struct StartError {
    address: SocketAddr,
    #[source]
    source: io::Error,
}

/// A running server. [`stop`](Self::stop) it; dropped, it stops too, but nobody waits.
#[derive(Debug)]
pub struct PubsubServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl PubsubServer {
    /// Starts on `address`; port 0 takes a free one. Loopback only makes sense: there is no authentication.
    ///
    /// # Errors
    /// When the address can not be listened on.
    pub async fn start(address: SocketAddr) -> Result<Self, StartError> {
        Self::start_with(address, Options::default()).await
    }

    /// Starts with options.
    ///
    /// # Errors
    /// When the address can not be listened on.
    pub async fn start_with(address: SocketAddr, options: Options) -> Result<Self, StartError> {
        let failed = |source| StartError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared::new(options));
        shared.tasks.spawn(Arc::clone(&shared).keep_time());
        let serving = shared.tasks.spawn(serve(Arc::clone(&shared), listener));
        Ok(Self { shared, address: bound, serving })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, for clients: `http://127.0.0.1:1234`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Topics, subscriptions, messages and counts without the network.
    #[must_use]
    pub fn admin(&self) -> Admin {
        Admin::new(Arc::clone(&self.shared))
    }

    /// Faults on order.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Ends every stream and every waiting call with `UNAVAILABLE`, and returns when all tasks are over.
    pub async fn stop(mut self) {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        if time::timeout(GRACE, &mut self.serving).await.is_err() {
            self.serving.abort();
        }
        self.shared.tasks.wait().await;
    }
}

impl Drop for PubsubServer {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    let publisher = PublisherServer::new(PublisherApi(Arc::clone(&shared)))
        .max_decoding_message_size(MAX_WIRE_BYTES)
        .max_encoding_message_size(usize::MAX);
    let subscriber = SubscriberServer::new(SubscriberApi(Arc::clone(&shared)))
        .max_decoding_message_size(MAX_WIRE_BYTES)
        .max_encoding_message_size(usize::MAX);
    let grpc = Routes::new(publisher).add_service(subscriber).into_axum_router();
    let served = Server::builder()
        .tcp_nodelay(true)
        .accept_http1(true)
        .add_routes(Routes::from(rest::routes(grpc, &shared)))
        .serve_with_incoming_shutdown(TcpListenerStream::new(listener), shared.stop.clone().cancelled_owned())
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "The embedded Pub/Sub server ended");
    }
}

/// One page of a listing; the token is the name of the page's last.
fn page<T>(all: impl Iterator<Item = T>, size: i32, name: impl Fn(&T) -> String) -> Result<(Vec<T>, String), Status> {
    let size = usize::try_from(size).map_err(|_| names::invalid("page_size", "must not be negative"))?;
    let size = if size == 0 { 100 } else { size.min(1_000) };
    let mut all = all.peekable();
    let page: Vec<T> = all.by_ref().take(size).collect();
    let token = if all.peek().is_some() { page.last().map(name).unwrap_or_default() } else { String::new() };
    Ok((page, token))
}
