//! `bellhop healthcheck`: asks the endpoints of the bellhop that runs in this container.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use anyhow::Context;

use super::{Exit, Failure, Output, Settings, output};
use crate::config::Profile;

const PATIENCE: Duration = Duration::from_secs(2);

/// What to ask.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which question
    #[arg(value_enum, default_value = "ready")]
    what: Question,
    /// Form of the answer
    #[arg(long, short, value_enum, default_value = "table")]
    pub(super) output: Output,
}

/// The questions a running bellhop answers.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Question {
    /// Does it run?
    Live,
    /// May it get work?
    Ready,
    /// Is it up at all?
    Started,
}

impl Question {
    const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Ready => "ready",
            Self::Started => "started",
        }
    }
}

/// Exit 0 when the answer is yes, 1 when it is no, 6 when there is none.
pub(super) async fn run(args: Args, settings: Settings) -> anyhow::Result<Exit> {
    let listen = settings.load(Profile::Probe)?.config.server.listen;
    let url = format!("http://{}/healthz/{}", reachable(listen), args.what.name());
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().context("no HTTP client")?;
    let no_answer = |_| Failure::unreachable(format!("nothing answers at {url}")).hint("is bellhop running here?");
    let answer = client.get(&url).send().await.map_err(no_answer)?;
    let well = answer.status().is_success();
    let body = answer.text().await.map_err(no_answer)?;
    match args.output {
        Output::Json => output::print(&format!("{body}\n"))?,
        Output::Table => output::print(&checks(&body))?,
    }
    Ok(if well { Exit::Ok } else { Exit::Failed })
}

/// A listener on all addresses is asked on the loopback one.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

fn checks(body: &str) -> String {
    let body: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("unknown").to_owned();
    let checks =
        body["checks"].as_object().into_iter().flatten().map(|(name, verdict)| vec![name.clone(), text(verdict)]);
    let rows: Vec<_> = [vec!["status".to_owned(), text(&body["status"])]].into_iter().chain(checks).collect();
    output::table(&rows)
}
