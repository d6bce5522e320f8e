//! A server that answers byte by byte as told, so that it can also answer wrongly.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

/// What the server does after it has read a request.
#[derive(Clone)]
pub(crate) enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes over and over until the other side is gone.
    SendForEver(Vec<u8>),
    /// Says nothing more until the other side is gone.
    Hold,
    /// Closes the connection.
    Close,
    /// Breaks the connection off.
    Reset,
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beginning = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        match self {
            Self::Send(bytes) => write!(f, "Send({:?})", beginning(bytes)),
            Self::SendForEver(bytes) => write!(f, "SendForEver({:?})", beginning(bytes)),
            Self::Hold => f.write_str("Hold"),
            Self::Close => f.write_str("Close"),
            Self::Reset => f.write_str("Reset"),
        }
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The number of its connection, from 0.
    pub(crate) connection: usize,
    /// Request line and headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }
}

#[derive(Debug, Default)]
struct Seen {
    requests: Mutex<Vec<Request>>,
    /// Requests so far, connections that the other side has closed.
    counts: watch::Sender<(usize, usize)>,
}

/// Stops when dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Seen>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Does the same for every request.
    pub(crate) async fn start(steps: &[Step]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, steps.to_vec(), seen.clone()));
        Self { port, seen, _tasks: tasks }
    }

    /// Answers every request with this text.
    pub(crate) async fn answering(answer: &str) -> Self {
        Self::start(&[Step::Send(answer.as_bytes().to_vec())]).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/events?x=1", self.port)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Returns once so many requests have come.
    pub(crate) async fn got_requests(&self, count: usize) {
        self.wait(|(requests, _)| requests >= count).await;
    }

    /// Returns once the other side has closed so many connections.
    pub(crate) async fn got_closed(&self, count: usize) {
        self.wait(|(_, closed)| closed >= count).await;
    }

    async fn wait(&self, met: impl Fn((usize, usize)) -> bool) {
        let mut counts = self.seen.counts.subscribe();
        let waiting = counts.wait_for(|counts| met(*counts));
        timeout(Duration::from_secs(20), waiting).await.expect("it happens in 20 s").unwrap();
    }
}

async fn serve(listener: TcpListener, steps: Vec<Step>, seen: Arc<Seen>) {
    let mut connections = JoinSet::new();
    for number in 0.. {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(converse(stream, number, steps.clone(), seen.clone()));
    }
}

async fn converse(mut stream: TcpStream, connection: usize, steps: Vec<Step>, seen: Arc<Seen>) {
    while let Some((head, body)) = read_request(&mut stream).await {
        seen.requests.lock().unwrap().push(Request { connection, head, body });
        seen.counts.send_modify(|(requests, _)| *requests += 1);
        for step in &steps {
            match step {
                Step::Send(bytes) => {
                    let _ = stream.write_all(bytes).await;
                }
                Step::SendForEver(bytes) => while stream.write_all(bytes).await.is_ok() {},
                Step::Hold => while stream.read(&mut [0; 1_024]).await.is_ok_and(|read| read > 0) {},
                Step::Close => return,
                Step::Reset => {
                    stream.set_zero_linger().unwrap();
                    return;
                }
            }
        }
    }
    seen.counts.send_modify(|(_, closed)| *closed += 1);
}

async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut body = bytes.split_off(end + 4);
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    while body.len() < length.unwrap_or(0) {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((head, body))
}
