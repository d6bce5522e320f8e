//! An HTTP handler that does as it is told and remembers every call.

use std::{
    collections::HashMap,
    fmt,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Bytes,
    extract::{ConnectInfo, State, connect_info::Connected},
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::post,
    serve::{IncomingStream, Listener},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{event, ports};

mod io;

use self::io::{Cut, CutIo};

/// What the handler does with one call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Behaviour {
    /// Answers with this status.
    Status(u16),
    /// Answers with this status after a while.
    After(Duration, u16),
    /// Never answers.
    Hang,
    /// Ends the connection without an answer after a while.
    CutAfter(Duration),
}

/// Success at once.
pub(crate) const OK: Behaviour = Behaviour::Status(200);

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// The event's text (see [`event::chat_message`]).
    pub(crate) label: String,
    /// Who called: what follows `/events/` in the address (see [`ScriptedHandler::url_of`]).
    pub(crate) caller: String,
    /// `Bellhop-Event-Id`.
    pub(crate) event_id: String,
    /// `Bellhop-Epoch`.
    pub(crate) epoch: u32,
    /// `Bellhop-Attempt`.
    pub(crate) attempt: u32,
    /// How often this handler was called for this event before.
    pub(crate) earlier: usize,
    /// When the request was there.
    pub(crate) started: Instant,
    /// When the answer was given, if one was.
    pub(crate) ended: Option<Instant>,
    /// The status answered.
    pub(crate) status: Option<u16>,
}

type Script = Box<dyn Fn(&Call) -> Behaviour + Send>;

struct Book {
    calls: Vec<Call>,
    count: HashMap<String, usize>,
    script: Script,
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Book").field("calls", &self.calls.len()).finish_non_exhaustive()
    }
}

/// The handler; its server ends with it.
#[derive(Debug)]
pub(crate) struct ScriptedHandler {
    address: SocketAddr,
    book: Arc<Mutex<Book>>,
    server: JoinSet<()>,
    connections: CancellationToken,
}

impl ScriptedHandler {
    /// Starts one that asks `script` what to do with each call.
    pub(crate) async fn start(script: impl Fn(&Call) -> Behaviour + Send + 'static) -> Self {
        let book = Book { calls: Vec::new(), count: HashMap::new(), script: Box::new(script) };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()));
        let mut handler = Self {
            address,
            book: Arc::new(Mutex::new(book)),
            server: JoinSet::new(),
            connections: CancellationToken::new(),
        };
        handler.up().await;
        handler
    }

    /// Where bellhop posts to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/events", self.address)
    }

    /// Another address of the same handler, so that calls tell who made them.
    pub(crate) fn url_of(&self, caller: &str) -> String {
        format!("{}/{caller}", self.url())
    }

    /// Changes the script for the calls to come.
    pub(crate) fn now(&self, script: impl Fn(&Call) -> Behaviour + Send + 'static) {
        open(&self.book).script = Box::new(script);
    }

    /// Goes away: connections are refused, running calls cut.
    pub(crate) async fn down(&mut self) {
        self.server.shutdown().await;
        self.connections.cancel();
    }

    /// Comes back at the same address.
    pub(crate) async fn up(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("the handler's port is free");
        let app = Router::new()
            .fallback(post(answer))
            .with_state(Arc::clone(&self.book))
            .into_make_service_with_connect_info::<Cut>();
        self.connections = CancellationToken::new();
        let listener = Connections { listener, all: self.connections.clone() };
        self.server.spawn(async move {
            let ended = axum::serve(listener, app).await;
            ended.expect("a server does not end by itself");
        });
    }

    /// Every call so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        open(&self.book).calls.clone()
    }

    /// The calls for the event with this text.
    pub(crate) fn calls_of(&self, label: &str) -> Vec<Call> {
        self.calls().into_iter().filter(|call| call.label == label).collect()
    }

    /// How many calls there were so far.
    pub(crate) fn count(&self) -> usize {
        open(&self.book).calls.len()
    }

    /// How many calls were answered with success.
    pub(crate) fn succeeded(&self) -> usize {
        open(&self.book).calls.iter().filter(|call| matches!(call.status, Some(200..=299))).count()
    }

    /// How many calls have no answer yet (or never will).
    pub(crate) fn unanswered(&self) -> usize {
        open(&self.book).calls.iter().filter(|call| call.ended.is_none()).count()
    }
}

fn open(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

async fn answer(
    State(book): State<Arc<Mutex<Book>>>,
    ConnectInfo(cut): ConnectInfo<Cut>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let (index, behaviour) = open(&book).record(&uri, &headers, &body);
    let status = match behaviour {
        Behaviour::Status(status) => status,
        Behaviour::After(delay, status) => {
            tokio::time::sleep(delay).await;
            status
        }
        Behaviour::Hang => std::future::pending().await,
        Behaviour::CutAfter(delay) => {
            tokio::time::sleep(delay).await;
            cut.0.cancel();
            return StatusCode::OK.into_response();
        }
    };
    let call = &mut open(&book).calls[index];
    call.ended = Some(Instant::now());
    call.status = Some(status);
    StatusCode::from_u16(status).expect("a status").into_response()
}

impl Book {
    fn record(&mut self, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> (usize, Behaviour) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let number = |name: &str| text(name).parse().unwrap_or_else(|_| panic!("{name} is not a number"));
        let event_id = text("bellhop-event-id");
        let earlier = self.count.entry(event_id.clone()).or_default();
        let call = Call {
            label: event::label(body),
            caller: uri.path().strip_prefix("/events/").unwrap_or_default().to_owned(),
            epoch: number("bellhop-epoch"),
            attempt: number("bellhop-attempt"),
            earlier: *earlier,
            started: Instant::now(),
            ended: None,
            status: None,
            event_id,
        };
        *earlier += 1;
        let behaviour = (self.script)(&call);
        self.calls.push(call);
        (self.calls.len() - 1, behaviour)
    }
}

/// Accepts connections that can be cut from within.
struct Connections {
    listener: TcpListener,
    all: CancellationToken,
}

impl Listener for Connections {
    type Io = CutIo;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (CutIo, SocketAddr) {
        let (stream, peer): (TcpStream, SocketAddr) = Listener::accept(&mut self.listener).await;
        (CutIo::new(stream, &self.all), peer)
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Connected<IncomingStream<'_, Connections>> for Cut {
    fn connect_info(stream: IncomingStream<'_, Connections>) -> Self {
        stream.io().cut()
    }
}
