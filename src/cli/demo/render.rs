//! What the terminal shows: a line per happening, then the sums.

use std::io;

use tokio::sync::mpsc;

use super::{
    Output,
    output::{printable, table},
    show,
    stage::Stage,
    tally::{Line, Summary, What},
};

/// Writes for people, or holds its tongue until the JSON.
#[derive(Debug)]
pub(super) struct Renderer {
    output: Output,
    colours: bool,
}

impl Renderer {
    pub(super) const fn new(output: Output, colours: bool) -> Self {
        Self { output, colours }
    }

    pub(super) fn opening(&self, stage: &Stage) -> io::Result<()> {
        let where_from = if stage.is_embedded() { "an embedded Pub/Sub server" } else { "the Pub/Sub emulator" };
        self.tell(&format!("bellhop takes events from {} on {where_from} at {}\n\n", stage.subscription, stage.host))
    }

    /// Shows lines until the sender is gone.
    pub(super) async fn live(&self, mut lines: mpsc::Receiver<Line>) -> io::Result<()> {
        while let Some(line) = lines.recv().await {
            self.tell(&self.line(&line))?;
        }
        Ok(())
    }

    /// How to send more.
    pub(super) fn invite(&self, stage: &Stage) -> io::Result<()> {
        self.tell(&format!(
            "\nAll is published. Send more from another terminal, end with Ctrl-C:\n  \
             PUBSUB_EMULATOR_HOST={} bellhop trigger chat.message --topic {}\n\n",
            stage.host, stage.topic
        ))
    }

    pub(super) fn closing(&self, summary: &Summary, stage: &Stage) -> io::Result<()> {
        match self.output {
            Output::Json => show(&format!("{}\n", serde_json::to_string(summary)?)),
            Output::Table => show(&format!("\n{}{NEXT}", sums(summary, stage.unacked()))),
        }
    }

    fn tell(&self, text: &str) -> io::Result<()> {
        if self.output == Output::Table { show(text) } else { Ok(()) }
    }

    fn line(&self, line: &Line) -> String {
        let (colour, word, more) = words(line.what);
        let word = format!("{word:<11}");
        let word = if self.colours { format!("\x1b[{colour}m{word}\x1b[0m") } else { word };
        let text = format!(
            "{:>7.2}s  {word}  {}  {:<26}  {:<20}  {more}",
            line.at.as_secs_f64(),
            printable(&line.id),
            printable(line.event_type.trim_start_matches("google.workspace.")),
            printable(&line.space),
        );
        format!("{}\n", text.trim_end())
    }
}

const NEXT: &str = "
Where to look next
  bellhop trigger --help      send built-in samples or files
  bellhop inspect FILE        what bellhop makes of a message, and why two are the same event
  bellhop config show         every setting, its value and where it came from
  docs/HANDLERS.md            write the handler that does the work
";

/// Colour, word, and what there is to add.
fn words(what: What) -> (u8, &'static str, String) {
    match what {
        What::Handled(1) => (32, "handled", String::new()),
        What::Handled(attempt) => (32, "handled", format!("at attempt {attempt}")),
        What::HandledAgain => (31, "DOUBLED", "the handler succeeded before".to_owned()),
        What::Duplicate => (36, "duplicate", "published twice; handler not called".to_owned()),
        What::Redelivered => (36, "duplicate", "delivered twice; handler not called".to_owned()),
        What::Retried(after) => (33, "retry", format!("handler failed; again in {:.1}s", after.as_secs_f64())),
        What::Quarantined(reason) => (31, "quarantined", reason.as_str().to_owned()),
        What::Skipped => (90, "skipped", "by a rule".to_owned()),
    }
}

fn sums(summary: &Summary, unacked: Option<usize>) -> String {
    let redelivered = match summary.redelivered {
        0 => String::new(),
        count => format!("; {count} of them were delivered twice on top"),
    };
    let mut rows = vec![
        ("published", summary.published, format!("messages{redelivered}")),
        ("distinct", summary.distinct, "events in them".to_owned()),
        ("handled", summary.handled, "events whose handler did its work, once".to_owned()),
        ("duplicates", summary.duplicates, "second messages of an event: acked, handler not called".to_owned()),
        ("retried", summary.retried, "events that failed at first".to_owned()),
        ("quarantined", summary.quarantined, "events put aside, payload kept".to_owned()),
        ("lost", summary.lost, "events neither handled nor put aside".to_owned()),
    ];
    if summary.skipped > 0 {
        rows.push((
            "skipped",
            summary.skipped,
            "events on top that a rule skipped: acked, handler not called".to_owned(),
        ));
    }
    if summary.mismatches > 0 {
        let about = "messages on top with other content under an event's id: put aside";
        rows.push(("mismatches", summary.mismatches, about.to_owned()));
    }
    if summary.handled_again > 0 {
        rows.push(("doubled", summary.handled_again, "events handled more than once".to_owned()));
    }
    if let Some(unacked) = unacked.filter(|unacked| *unacked > 0) {
        rows.push(("unacked", unacked, "messages still with the server".to_owned()));
    }
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|(name, count, about)| vec![name.to_owned(), format!("{count:>6}"), about]).collect();
    table(&rows)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::outcome::Reason;

    fn line(what: What) -> Line {
        Line {
            at: Duration::from_millis(1_234),
            id: "bh1-ix-00".to_owned(),
            event_type: "google.workspace.chat.message.v1.created".to_owned(),
            space: "spaces/A\u{1b}[2J".to_owned(),
            what,
        }
    }

    #[test]
    fn a_line_is_readable_and_can_not_steer_the_terminal() {
        let renderer = Renderer::new(Output::Table, false);

        let text = renderer.line(&line(What::Handled(2)));

        assert_eq!(
            text,
            "   1.23s  handled      bh1-ix-00  chat.message.v1.created     spaces/A\u{fffd}[2J          at attempt 2\n"
        );
    }

    #[test]
    fn colours_are_used_only_where_they_are_welcome() {
        let quarantined = line(What::Quarantined(Reason::FailuresExhausted));

        assert!(Renderer::new(Output::Table, true).line(&quarantined).contains("\x1b[31mquarantined\x1b[0m"));
        assert!(!Renderer::new(Output::Table, false).line(&quarantined).contains('\x1b'));
    }

    #[test]
    fn the_table_has_a_row_for_trouble_only_when_there_is_some() {
        let fine = Summary { published: 3, distinct: 3, handled: 3, ..Summary::default() };
        let text = sums(&fine, Some(0));
        assert!(text.starts_with("published         3  messages\n"), "{text}");
        assert!(!["unacked", "doubled", "skipped"].iter().any(|row| text.contains(row)), "{text}");

        let text = sums(&Summary { handled_again: 1, skipped: 2, ..fine }, Some(2));
        assert!(text.contains("unacked") && text.contains("doubled"), "{text}");
        assert!(text.contains("\nskipped           2  events on top that a rule skipped"), "{text}");
    }
}
