//! A door in front of Google's emulator that hangs up for those who can not.
//!
//! The emulator notices only a client that ends its stream in good order. A client that is killed stays a subscriber for
//! ever and goes on getting its share of the messages, each of which then waits for its ack deadline: after forty kills
//! hardly a message reaches a living one. The real service notices a dead connection; so does this door, which then ends
//! the stream towards the emulator.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{Request, StatusCode, Version},
    response::{IntoResponse, Response},
};
use http_body_util::{BodyExt, StreamBody};
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{
    codegen::Service,
    service::Routes,
    transport::{Channel, Server},
};

/// Frames on their way, in either direction.
const IN_TRANSIT: usize = 16;

/// The door. One for each process, so that nobody waits for another's unread messages.
#[derive(Debug)]
pub(crate) struct Front {
    address: SocketAddr,
    _serving: JoinSet<()>,
}

#[derive(Debug, Clone)]
struct Door {
    address: String,
    behind: Channel,
    plain: reqwest::Client,
    calls: Arc<Mutex<JoinSet<()>>>,
}

impl Front {
    /// Opens it before `broker` (`host:port`).
    pub(crate) async fn of(broker: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket");
        let behind = format!("http://{broker}");
        let door = Door {
            behind: Channel::from_shared(behind.clone()).expect("an address").connect_lazy(),
            plain: reqwest::Client::builder().no_proxy().build().expect("a client without special wishes"),
            address: behind,
            calls: Arc::default(),
        };
        let routes = Routes::from(Router::new().fallback(pass).with_state(door));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let server = Server::builder().accept_http1(true).add_routes(routes);
            let ended = server.serve_with_incoming(TcpListenerStream::new(listener)).await;
            ended.expect("a server does not end by itself");
        });
        Self { address, _serving: serving }
    }

    /// `host:port` for clients.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }
}

/// Streams and calls; beside them the plain HTTP by which a subscription is asked for.
async fn pass(State(door): State<Door>, request: Request<Body>) -> Response {
    if request.version() == Version::HTTP_2 { door.stream(request).await } else { door.fetch(request).await }
}

impl Door {
    /// The call runs in tasks of its own: when the client dies, only the request ends, and the emulator ends the answer.
    async fn stream(&self, request: Request<Body>) -> Response {
        let (parts, mut from_client) = request.into_parts();
        let (to_emulator, outgoing) = mpsc::channel(IN_TRANSIT);
        let (to_client, incoming) = mpsc::channel(IN_TRANSIT);
        let (head, answered) = oneshot::channel();
        self.spawn(async move {
            while let Some(Ok(frame)) = from_client.frame().await {
                if to_emulator.send(Ok::<_, Infallible>(frame)).await.is_err() {
                    break;
                }
            }
        });
        let mut behind = self.behind.clone();
        self.spawn(async move {
            let body = tonic::body::Body::new(StreamBody::new(ReceiverStream::new(outgoing)));
            if poll_fn(|cx| behind.poll_ready(cx)).await.is_err() {
                return;
            }
            let Ok(response) = behind.call(Request::from_parts(parts, body)).await else { return };
            let (parts, mut from_emulator) = response.into_parts();
            let mut client_is_there = head.send(parts).is_ok();
            while let Some(frame) = from_emulator.frame().await {
                client_is_there = client_is_there && to_client.send(frame).await.is_ok();
            }
        });
        match answered.await {
            Ok(parts) => Response::from_parts(parts, Body::new(StreamBody::new(ReceiverStream::new(incoming)))),
            Err(_) => StatusCode::BAD_GATEWAY.into_response(),
        }
    }

    async fn fetch(&self, request: Request<Body>) -> Response {
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let (parts, body) = request.into_parts();
        let Ok(body) = body.collect().await else { return StatusCode::BAD_REQUEST.into_response() };
        let call = self.plain.request(parts.method, format!("{}{path}", self.address)).headers(parts.headers);
        let Ok(answer) = call.body(body.to_bytes()).send().await else {
            return StatusCode::BAD_GATEWAY.into_response();
        };
        let (status, headers) = (answer.status(), answer.headers().clone());
        (status, headers, answer.bytes().await.unwrap_or_default()).into_response()
    }

    fn spawn(&self, call: impl Future<Output = ()> + Send + 'static) {
        self.calls.lock().expect("not poisoned").spawn(call);
    }
}
