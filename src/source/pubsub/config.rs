//! The `[pubsub]` section, and what is wrong with it.

use std::{path::PathBuf, time::Duration};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, EndpointError};

/// The `[pubsub]` section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The project that holds the subscription. Not needed when `subscription` is a full name.
    pub project: String,
    /// The subscription to pull from: an id, or `projects/<project>/subscriptions/<id>`.
    pub subscription: String,
    /// Where Pub/Sub is: empty for Google, else a URL; `host:port` is read as `http://host:port`. Over plain `http`
    /// no credentials are sent.
    pub endpoint: String,
    /// Honour `PUBSUB_EMULATOR_HOST` inside Kubernetes too, where it is refused otherwise.
    pub allow_emulator: bool,
    /// A credentials file; empty: Application Default Credentials.
    pub credentials_file: PathBuf,
    /// Streams pulled from at once, 1 to 64. One carries about 10 MB/s.
    pub streams: usize,
    /// Deliveries that this process may hold unanswered, over all streams; 0: worker.concurrency + worker.parking.
    pub max_outstanding_messages: usize,
    /// The bytes they may hold, over all streams, 64 KiB to 4 GiB - 1. A larger message comes alone.
    pub max_outstanding_bytes: ByteSize,
    /// How long the lease on a message is extended at a time, 10 s to 10 min. What a crashed process held comes back
    /// after so long; under 30 s a stalled process loses leases that it still needs.
    #[serde(with = "humantime_serde")]
    pub lease_extension: Duration,
    /// A stream that delivers nothing for so long is replaced by a fresh one, 10 s to 1 h: a connection that died
    /// without a word looks like one that has nothing to say.
    #[serde(with = "humantime_serde")]
    pub silence: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            project: String::new(),
            subscription: String::new(),
            endpoint: String::new(),
            allow_emulator: false,
            credentials_file: PathBuf::new(),
            streams: 1,
            max_outstanding_messages: 0,
            max_outstanding_bytes: ByteSize::mib(64),
            lease_extension: Duration::from_secs(60),
            silence: Duration::from_secs(5 * 60),
        }
    }
}

/// One thing that is wrong with the section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, within the section.
    pub field: &'static str,
    /// What it is, what is allowed, what to do.
    pub message: String,
}

impl Problem {
    pub(super) fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}

impl Config {
    /// Everything that is wrong with this section alone, all at once.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        problems.extend(self.subscription_name().err());
        if let Err(error) = self.endpoint() {
            problems.push(Problem::new("endpoint", error.to_string()));
        }
        if !(1..=64).contains(&self.streams) {
            problems.push(Problem::new("streams", format!("is {}: give 1 to 64", self.streams)));
        }
        let outstanding = self.max_outstanding_messages;
        if outstanding > 100_000 {
            let message = format!("is {outstanding}: give 1 to 100000, or 0 to derive it from [worker]");
            problems.push(Problem::new("max_outstanding_messages", message));
        }
        let bytes = self.max_outstanding_bytes;
        if !(64 * 1024..=u64::from(u32::MAX)).contains(&bytes.as_u64()) {
            problems.push(Problem::new("max_outstanding_bytes", format!("is {bytes}: give 64KiB to 4095MiB")));
        }
        let mut between = |field, value: Duration, min: u64, max: u64, allowed: &str| {
            if value < Duration::from_secs(min) || value > Duration::from_secs(max) {
                let message = format!("is {}: give {allowed}", humantime::format_duration(value));
                problems.push(Problem::new(field, message));
            }
        };
        between("lease_extension", self.lease_extension, 10, 600, "10s to 10m");
        between("silence", self.silence, 10, 3_600, "10s to 1h");
        problems
    }

    /// What works but should be known, as a warning at start.
    #[must_use]
    pub fn warnings(&self) -> Vec<Problem> {
        let mut warnings = Vec::new();
        if self.lease_extension < Duration::from_secs(30) {
            let message = "is under 30s: a process that stalls for so long loses its leases, and events come twice";
            warnings.push(Problem::new("lease_extension", message));
        }
        if self.endpoint().is_ok_and(|endpoint| endpoint.is_plain()) {
            let message = "is not encrypted: taken for an emulator, no credentials are sent";
            warnings.push(Problem::new("endpoint", message));
        }
        warnings
    }

    /// Takes over the value of `PUBSUB_EMULATOR_HOST`, when it is set to something.
    ///
    /// # Errors
    /// Under Kubernetes (`in_kubernetes`) unless `allow_emulator`: a variable that strayed into a pod would silently
    /// take production away from its subscription. When `endpoint` says something else: one of both is a mistake.
    pub fn use_emulator(&mut self, host: Option<&str>, in_kubernetes: bool) -> Result<(), Problem> {
        let Some(host) = host.map(str::trim).filter(|host| !host.is_empty()) else { return Ok(()) };
        if in_kubernetes && !self.allow_emulator {
            let message =
                "PUBSUB_EMULATOR_HOST is set inside Kubernetes: unset it, or set pubsub.allow_emulator = true";
            return Err(Problem::new("endpoint", message));
        }
        let emulator =
            Endpoint::parse(host).map_err(|error| Problem::new("endpoint", format!("PUBSUB_EMULATOR_HOST {error}")))?;
        if !self.endpoint.trim().is_empty() && self.endpoint().ok().as_ref() != Some(&emulator) {
            let message = "differs from PUBSUB_EMULATOR_HOST: unset the variable or clear pubsub.endpoint";
            return Err(Problem::new("endpoint", message));
        }
        self.endpoint = emulator.as_str().to_owned();
        Ok(())
    }

    /// The subscription's full name, `projects/<project>/subscriptions/<id>`.
    ///
    /// # Errors
    /// When it can not be told from `project` and `subscription`.
    pub fn subscription_name(&self) -> Result<String, Problem> {
        let (project, given) = (self.project.trim(), self.subscription.trim());
        if given.is_empty() {
            return Err(Problem::new("subscription", "is missing: give the id of the subscription to pull from"));
        }
        let malformed = || {
            let message = format!("is \"{given}\": give an id, or projects/<project>/subscriptions/<id>");
            Problem::new("subscription", message)
        };
        let parts: Vec<&str> = given.split('/').collect();
        let (named, id) = match parts[..] {
            [id] => (project, id),
            ["projects", named, "subscriptions", id] => (named, id),
            _ => return Err(malformed()),
        };
        if named.is_empty() && parts.len() == 1 {
            return Err(Problem::new("project", "is missing: give the project that holds the subscription"));
        }
        if !project.is_empty() && project != named {
            let message = format!("is \"{project}\", but the subscription is in \"{named}\": give one of them");
            return Err(Problem::new("project", message));
        }
        if !is_name(id) {
            return Err(malformed());
        }
        if !is_name(named) {
            return Err(Problem::new("project", format!("is \"{named}\": give the id of a project")));
        }
        Ok(format!("projects/{named}/subscriptions/{id}"))
    }

    /// Where Pub/Sub is; the repaired form of what was given.
    ///
    /// # Errors
    /// When it is no URL that a connection can be opened to.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        Endpoint::parse(&self.endpoint)
    }
}

/// Lenient: the server knows its rules; this only keeps a typing error from becoming another resource.
pub(super) fn is_name(text: &str) -> bool {
    (1..=255).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.~+%:".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(project: &str, subscription: &str) -> Config {
        Config { project: project.into(), subscription: subscription.into(), ..Config::default() }
    }

    fn fields(config: &Config) -> Vec<&'static str> {
        config.problems().into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn short_and_full_names_mean_the_same_subscription() {
        let full = "projects/p-1/subscriptions/chat-events";

        assert_eq!(config("p-1", "chat-events").subscription_name().unwrap(), full);
        assert_eq!(config("", full).subscription_name().unwrap(), full);
        assert_eq!(config("p-1", full).subscription_name().unwrap(), full);
    }

    #[test]
    fn a_name_that_leaves_a_question_is_refused() {
        for (project, subscription, field) in [
            ("p", "", "subscription"),
            ("", "s", "project"),
            ("other", "projects/p/subscriptions/s", "project"),
            ("p", "projects/p/topics/s", "subscription"),
            ("p", "a b", "subscription"),
            ("p q", "s", "project"),
            ("", "projects//subscriptions/s", "project"),
        ] {
            let problem = config(project, subscription).subscription_name().unwrap_err();

            assert_eq!(problem.field, field, "{project} {subscription}");
        }
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let config = Config {
            endpoint: "ftp://x".into(),
            streams: 0,
            max_outstanding_messages: 1_000_000,
            max_outstanding_bytes: ByteSize::b(1),
            lease_extension: Duration::from_secs(9),
            silence: Duration::ZERO,
            ..Config::default()
        };

        let all = [
            "subscription",
            "endpoint",
            "streams",
            "max_outstanding_messages",
            "max_outstanding_bytes",
            "lease_extension",
            "silence",
        ];
        assert_eq!(fields(&config), all);
    }

    #[test]
    fn the_defaults_lack_nothing_but_the_names() {
        assert_eq!(fields(&Config::default()), ["subscription"]);
        assert!(config("p", "s").problems().is_empty());
        assert!(config("p", "s").warnings().is_empty());
    }

    #[test]
    fn short_leases_and_plain_connections_are_warned_about() {
        let config =
            Config { lease_extension: Duration::from_secs(10), endpoint: "localhost:8085".into(), ..config("p", "s") };

        assert!(config.problems().is_empty());
        let fields: Vec<_> = config.warnings().into_iter().map(|warning| warning.field).collect();
        assert_eq!(fields, ["lease_extension", "endpoint"]);
    }

    #[test]
    fn the_emulator_variable_is_taken_over() {
        let mut config = config("p", "s");

        config.use_emulator(Some(" localhost:8085 "), false).unwrap();
        config.use_emulator(None, true).unwrap();
        config.use_emulator(Some(""), true).unwrap();

        assert_eq!(config.endpoint, "http://localhost:8085");
    }

    #[test]
    fn the_emulator_variable_is_refused_in_kubernetes_unless_allowed() {
        let mut config = config("p", "s");

        assert!(config.use_emulator(Some("emulator:8085"), true).is_err());
        assert_eq!(config.endpoint, "");
        config.allow_emulator = true;
        config.use_emulator(Some("emulator:8085"), true).unwrap();
        assert_eq!(config.endpoint, "http://emulator:8085");
    }

    #[test]
    fn the_emulator_variable_never_overrides_another_endpoint() {
        let mut other = Config { endpoint: "https://pubsub.example.com".into(), ..config("p", "s") };
        let mut same = Config { endpoint: "http://localhost:8085".into(), ..config("p", "s") };

        assert!(other.use_emulator(Some("localhost:8085"), false).is_err());
        same.use_emulator(Some("localhost:8085"), false).unwrap();
    }

    #[test]
    fn the_section_reads_and_writes_in_the_forms_people_use() {
        let text = r#"{"project": "p", "max_outstanding_bytes": "1MiB", "lease_extension": "1m 30s"}"#;

        let config: Config = serde_json::from_str(text).unwrap();

        assert_eq!(config.max_outstanding_bytes, ByteSize::mib(1));
        assert_eq!(config.lease_extension, Duration::from_secs(90));
        assert!(serde_json::from_str::<Config>(r#"{"stream": 1}"#).is_err());
    }
}
