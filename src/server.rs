//! The endpoints for probes and metrics: `/healthz/{live,ready,started}` and `/metrics`.
//!
//! None of them touches the store or the source; they answer from flags the application keeps, however busy it is.

mod error;
mod health;
mod metrics;

use std::{io, net::SocketAddr, time::Duration};

use axum::{Router, extract::FromRef, routing::get};
use tokio::{net::TcpListener, time};
use tokio_util::sync::CancellationToken;

pub use self::health::{Check, Health};
use crate::metrics::Metrics;

/// How long open connections may take to finish once the server is told to stop. One that never reads waits in vain.
const FAREWELL: Duration = Duration::from_secs(1);

/// A bound listener, not yet answering.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// The listener could not be had.
#[derive(Debug, thiserror::Error)]
#[error("can not listen on {address} (server.listen): {}", reason(.source))]
pub struct BindError {
    /// As configured.
    pub address: SocketAddr,
    /// Why.
    #[source]
    pub source: io::Error,
}

fn reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another process uses the port; stop it or choose another one",
        io::ErrorKind::PermissionDenied => "not permitted; choose a port above 1023",
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
        _ => "the system refused",
    }
}

/// What the answers are made of.
#[derive(Debug, Clone)]
struct Shown {
    health: Health,
    metrics: Metrics,
}

impl FromRef<Shown> for Health {
    fn from_ref(shown: &Shown) -> Self {
        shown.health.clone()
    }
}

impl FromRef<Shown> for Metrics {
    fn from_ref(shown: &Shown) -> Self {
        shown.metrics.clone()
    }
}

impl Server {
    /// Takes the port. Connections wait until [`Server::run`].
    ///
    /// # Errors
    /// When the port can not be had.
    pub async fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let refuse = |source| BindError { address, source };
        let listener = TcpListener::bind(address).await.map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        Ok(Self { listener, address })
    }

    /// Where it listens: the real port where 0 was configured.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop`; returns at most a second after it. Stop it last: a draining process is still watched.
    pub async fn run(self, health: Health, metrics: Metrics, stop: CancellationToken) {
        let router = router(health, metrics);
        let graceful = stop.clone();
        let serving = axum::serve(self.listener, router)
            .with_graceful_shutdown(async move { graceful.cancelled().await })
            .into_future();
        let farewell = async {
            stop.cancelled().await;
            time::sleep(FAREWELL).await;
        };
        tokio::select! {
            served = serving => if let Err(error) = served {
                tracing::error!(%error, "The endpoints stopped");
            },
            () = farewell => tracing::debug!("Left connections that did not finish"),
        }
    }
}

fn router(health: Health, metrics: Metrics) -> Router {
    Router::new()
        .route("/healthz/live", get(health::live))
        .route("/healthz/ready", get(health::ready))
        .route("/healthz/started", get(health::started))
        .route("/metrics", get(metrics::scrape))
        .fallback(error::not_found)
        .method_not_allowed_fallback(error::method_not_allowed)
        .with_state(Shown { health, metrics })
}

#[cfg(test)]
mod tests;
