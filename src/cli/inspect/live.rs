//! Messages of a subscription, looked at and given back.

use std::{io::Write, sync::Arc};

use super::{
    super::output::{counted, printable},
    Args, Sink,
    fate::Fates,
    sink,
};
use crate::{
    cli::{Exit, Failure, Settings, Signals},
    config::{self, Profile},
    event,
    shutdown::Shutdown,
    source::pubsub::{GivenBack, Peek, RequestError},
};

/// Peeks at `most` messages. The first signal ends it in order: what was read is shown and given back.
pub(super) async fn run(
    args: &Args,
    most: usize,
    settings: Settings,
    signals: Signals,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let config = load(args, settings)?;
    let shutdown = Shutdown::new();
    signals.drain(&shutdown, peek(args, most, &config, &shutdown, out, err)).await
}

fn load(args: &Args, settings: Settings) -> Result<config::Config, config::Problems> {
    // A full name on the command line says the project too, whatever the configuration says.
    let full = args.subscription.as_ref().filter(|name| name.contains('/'));
    let settings = settings
        .with("--endpoint", "pubsub.endpoint", args.endpoint.clone())
        .with("--subscription", "pubsub.subscription", args.subscription.clone())
        .with("--subscription", "pubsub.project", full.map(|_| String::new()));
    Ok(settings.load(Profile::Probe)?.config)
}

async fn peek(
    args: &Args,
    most: usize,
    config: &config::Config,
    shutdown: &Shutdown,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let opened = tokio::select! {
        opened = Peek::open(&config.pubsub, most) => opened,
        () = shutdown.stopping() => return Ok(Exit::Interrupted),
    };
    let mut peek = opened.map_err(explain)?;
    let subscription = peek.subscription().to_owned();
    let scope = [&args.scope, &config.claims.scope, &subscription].into_iter().find(|scope| !scope.is_empty());
    let mut sink = sink(args, "MESSAGE", scope.map_or("", String::as_str), Fates::new(config));

    // Whatever goes wrong from here on, what was read goes back.
    let shown = show(&mut peek, args, &mut *sink, shutdown, out).await;
    let max_attempts = peek.max_attempts();
    let back = peek.close().await;
    let finished = sink.finish(out).and_then(|()| out.flush());
    let told = write!(err, "{}", printable(&tell(back, &subscription, max_attempts)));
    shown?;
    finished?;
    told?;
    Ok(if shutdown.is_stopping() { Exit::Interrupted } else { Exit::Ok })
}

async fn show(
    peek: &mut Peek,
    args: &Args,
    sink: &mut (dyn Sink + '_),
    shutdown: &Shutdown,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    loop {
        let next = tokio::select! {
            biased;
            () = shutdown.stopping() => return Ok(()),
            next = peek.next(args.wait) => next.map_err(explain)?,
        };
        let Some(raw) = next else { return Ok(()) };
        let event = event::decode(&Arc::new(raw));
        sink.take(&args.label(&event.raw.message_id), &event, out)?;
    }
}

/// What it cost.
fn tell(back: GivenBack, subscription: &str, max_attempts: Option<u32>) -> String {
    let GivenBack { read, beyond, confirmed } = back;
    let messages = |count| counted(count, "message");
    let mut text = if read == 0 {
        format!("No message of {subscription} was read.\n")
    } else {
        format!("Read {} of {subscription}.\n", messages(read))
    };
    if read + beyond == 0 {
        return text;
    }
    if beyond > 0 {
        text += &format!(
            "The server handed out {} beyond that: it does not keep to its limit. What was still on its way returns \
             after its ack deadline.\n",
            messages(beyond)
        );
    }
    let all = messages(read + beyond);
    text += &if confirmed {
        format!("Gave {all} back, and nothing else. ")
    } else {
        format!("{all} could not be given back, and will return after the ack deadline. ")
    };
    text += &match max_attempts {
        Some(attempts) => {
            format!("Each lost a delivery attempt: after {attempts} of them the dead-letter policy takes a message.\n")
        }
        None => {
            "Each lost a delivery attempt, which counts where there is a dead-letter policy; here is none.\n".into()
        }
    };
    text
}

fn explain(error: RequestError) -> Failure {
    Failure::of_request(error, "name it with --subscription, or correct pubsub.project and pubsub.subscription")
}
