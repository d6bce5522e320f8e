//! What sections and their limits must hold, word for word.

use super::*;

#[test]
fn a_store_must_be_named_and_usable() {
    let in_kubernetes = [("KUBERNETES_SERVICE_HOST", "10.0.0.1")];
    refused(
        "store.url = none\n",
        &[],
        &["store.backend = \"auto\" (default): needs a URL: nobody said where claims are kept; set store.url (or \
         DATABASE_URL) for PostgreSQL, or store.backend = \"sqlite\" for one process"],
    );
    refused(
        "store.url = \"\"",
        &[],
        &[
            "store.url = \"\" (bellhop.toml): is given but empty; fill it, or leave it out and name another store.backend",
        ],
    );
    refused(
        "store.url = none\n",
        &[("DATABASE_URL", "")],
        &[
            "store.url = \"\" (environment DATABASE_URL): is given but empty; fill it, or leave it out and name another \
         store.backend",
        ],
    );
    refused(
        "store.url = none\nstore.backend = \"postgres\"",
        &[],
        &["store.url: is needed by store.backend \"postgres\"; set store.url, store.url_file or DATABASE_URL"],
    );
    refused(
        "store.url = none\nstore.backend = \"sqlite\"\nstore.replicas = 2",
        &[],
        &[
            "store.replicas = 2 (bellhop.toml): needs a store that processes share; sqlite serves one; use store.backend = \
         \"postgres\", or set it to 1",
        ],
    );
    refused(
        "store.url = none\nstore.backend = \"sqlite\"",
        &in_kubernetes,
        &[
            "store.backend = \"sqlite\" (bellhop.toml): \"sqlite\" serves one process, and Kubernetes may run two at once \
         (rollouts, too); use \"postgres\", or set store.single_process = true and never scale up",
        ],
    );
    refused(
        "store.url = none\nstore.backend = \"memory\"\n[[rule]]\non_unknown = \"quarantine\"",
        &[],
        &[
            "store.backend = \"memory\" (bellhop.toml): \"memory\" forgets what began: on_unknown = \"quarantine\" can not be \
         kept; use \"postgres\" or \"sqlite\", or on_unknown = \"rerun\" in all rules",
        ],
    );
    warned("store.url = none\nstore.backend = \"sqlite\"\nstore.single_process = true", &in_kubernetes, &[]);
    warned(
        "store.backend = \"sqlite\"",
        &[],
        &["store.url: is not used: store.backend is \"sqlite\"; leave one of them out"],
    );
    warned(
        "store.url = none\nstore.backend = \"memory\"",
        &[],
        &["store.backend: \"memory\" forgets everything when the process ends: events may be handled twice; for \
         development only"],
    );
    warned("store.replicas = 20", &in_kubernetes, &[]);
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    refused(
        "worker.concurrency = 20\npubsub.max_outstanding_messages = 10",
        &[],
        &[
            "worker.concurrency = 20 (bellhop.toml): is more than pubsub.max_outstanding_messages (10): handlers would wait \
         for ever; lower it, or set pubsub.max_outstanding_messages to 20 or more, or to 0",
        ],
    );
    refused(
        "worker.concurrency = 8\nworker.parking = 8\npubsub.max_outstanding_messages = 10",
        &[],
        &["worker.parking = 8 (bellhop.toml): and worker.concurrency (8) are together more than \
         pubsub.max_outstanding_messages (10); lower it, or raise pubsub.max_outstanding_messages, or set both to 0"],
    );
    refused(
        "worker.concurrency = 4\npubsub.streams = 8\npubsub.max_outstanding_messages = 10",
        &[],
        &[
            "pubsub.max_outstanding_messages = 10 (bellhop.toml): is divided over 8 streams, at least 2 each; set it to 16 or \
         more, or to 0",
        ],
    );
    refused(
        "retry.min_backoff = \"20m\"",
        &[],
        &["retry.min_backoff = \"20m\" (bellhop.toml): is longer than retry.max_backoff (10m); lower it, or raise \
         retry.max_backoff"],
    );
    refused(
        "worker.drain_timeout = \"2m\"\n[[rule]]\ntimeout = \"3m\"",
        &[],
        &[
            "worker.drain_timeout = \"2m\" (bellhop.toml): is shorter than the longest handler timeout (3m); use \"auto\", or \
         allow the cut with worker.drain_may_cut = true",
        ],
    );
    warned(
        "worker.drain_timeout = \"10s\"\nworker.drain_may_cut = true",
        &[],
        &[
            "worker.drain_timeout: is shorter than the longest handler timeout (1m); a drain cuts handlers that run longer",
        ],
    );
    warned(
        "[[rule]]\ntimeout = \"2s\"",
        &[],
        &[
            "handler.connect_timeout: is not below the shortest handler timeout, 2s: a call cut before that is unknown; \
         lower it, or raise the timeout",
        ],
    );
    warned(
        "worker.concurrency = 4\npubsub.max_outstanding_messages = 10",
        &[],
        &["pubsub.max_outstanding_messages: leaves only 6 places for waiting copies; set it to 0 to have it computed"],
    );
    warned(
        "claims.retention = \"4d\"\npubsub.lease_extension = \"10s\"",
        &[],
        &[
            "pubsub.lease_extension: is under 30s: a process that stalls for so long loses its leases, and events come \
         twice; ",
            "claims.retention: must be the message retention of subscription and topic (7 days unless changed) + 3 days; \
         below that, a late copy is put in quarantine as too old",
        ],
    );
}

#[test]
fn the_source_must_be_named_and_an_emulator_meant() {
    refused(
        "pubsub.project = none\n",
        &[],
        &["pubsub.project: is missing: give the project that holds the subscription"],
    );
    refused(
        "pubsub.subscription = \"projects/other/subscriptions/s\"",
        &[],
        &[
            "pubsub.project = \"my-project\" (bellhop.toml): is \"my-project\", but the subscription is in \"other\": give \
         one of them",
        ],
    );
    refused("pubsub.endpoint = \"ftp://x\"", &[], &[&problems(&merged("pubsub.endpoint = \"ftp://x\""), &[], &[])[0]]);
    refused(
        "",
        &[("PUBSUB_EMULATOR_HOST", "emulator:8085"), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")],
        &[
            "pubsub.endpoint = \"emulator:8085\" (environment PUBSUB_EMULATOR_HOST): PUBSUB_EMULATOR_HOST is set inside \
         Kubernetes: unset it, or set pubsub.allow_emulator = true",
        ],
    );
    refused(
        "reply.mode = \"chat\"",
        &[],
        &[
            "reply.mode = \"chat\" (bellhop.toml): is announced for a later version; this one knows only \"none\"; let the \
         handler post its answers itself",
        ],
    );
}

#[test]
fn a_handler_must_be_callable_and_know_who_calls() {
    for (toml, expected) in [
        ("handler.url = \"\"", "handler.url = \"\" (bellhop.toml): is not a URL: write http://host:port/path"),
        (
            "handler.url = \"ftp://localhost/\"",
            "handler.url = \"ftp://localhost/\" (bellhop.toml): must begin with http:// or https://",
        ),
        ("handler.kind = \"exec\"", "handler.command = []: must name a program"),
        ("handler.auth = \"bearer\"", "handler.bearer_token: is needed for handler.auth = \"bearer\""),
        (
            "handler.auth = \"bearer\"\nhandler.bearer_token = \"\"",
            "handler.bearer_token = \"\" (bellhop.toml): is given but empty; fill it, or leave it out",
        ),
        (
            "handler.signing_secret = \"\"",
            "handler.signing_secret = \"\" (bellhop.toml): is given but empty; fill it, or leave it out",
        ),
    ] {
        let told = problems(&merged(toml), &[], &[]);
        assert_eq!(told.iter().map(|text| text.replace(" (default)", "")).collect::<Vec<_>>(), [expected], "{toml}");
    }
    warned("handler.url = \"http://bot:9000/\"\nhandler.signing_secret = \"s\"", &[], &[]);
    warned("handler.url = \"http://bot:9000/\"\nhandler.unauthenticated = true", &[], &[]);
    warned("handler.kind = \"echo\"\nhandler.url = \"\"", &[], &[]);
}

#[test]
fn rules_that_can_not_apply_are_told() {
    warned(
        "[[rule]]\nmatch = { type = \"MESSAGE\" }\n[[rule]]\nmatch = { type = \"MESSAGE\", command = \"/restart\" }",
        &[],
        &["rule[1].match: can never apply: rule[0] comes first and takes all its events; move it up, or remove it"],
    );
    warned(
        "[[rule]]\nmatch = { space = [\"spaces/A*\", \"spaces/B\"] }\n[[rule]]\nmatch = { space = \"spaces/AB*\" }",
        &[],
        &["rule[1].match: can never apply: rule[0] comes first and takes all its events; move it up, or remove it"],
    );
    warned(
        "[[rule]]\nmatch = { type = \"MESSAGE\", command = \"/restart\" }\n[[rule]]\nmatch = { type = \"MESSAGE\" }",
        &[],
        &[],
    );
    warned("[[rule]]\nmatch = { space = \"spaces/AB\" }\n[[rule]]\nmatch = { space = \"spaces/A*\" }", &[], &[]);
    warned(
        "[[rule]]\nmatch = { type = \"MESAGE\", command = \"restart\", sender = \"ROBOT\", user = \"me\" }",
        &[],
        &[
            "rule[0].match.type: \"MESAGE\" is no event type bellhop knows; did you mean \"MESSAGE\"?",
            "rule[0].match.command: \"restart\" is neither a command's name with its slash nor its id; did you mean \
         \"/restart\"?",
            "rule[0].match.user: \"me\" can not match: names start with users/; write users/…",
            "rule[0].match.sender: \"ROBOT\" sends nothing; senders are \"HUMAN\" and \"BOT\"",
        ],
    );
    warned(
        "[[rule]]\naction = \"skip\"\nmatch = { type = \"CARD_*\" }\ntimeout = \"1m\"",
        &[],
        &[
            "rule[0].action: does not call the handler: timeout, on_unknown and max_failures say nothing here; leave them out",
        ],
    );
    refused(
        "[[rule]]\nmatch = { space = [] }",
        &[],
        &["rule[0].match.space = [] (bellhop.toml): matches nothing: it is empty; leave it out to match everything"],
    );
}
