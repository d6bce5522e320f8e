//! The floor table: which module lives where.

/// A floor; lower ones may not know higher ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Floor {
    /// Words: no I/O.
    Words,
    /// What the engine needs from outside, as traits.
    Ports,
    /// Worker and sweeper.
    Engine,
    /// The world outside.
    Adapters,
    /// Puts it all together.
    Application,
    /// Fakes and suites, for tests only.
    Testing,
}

const TABLE: &[(Floor, &[&str])] = &[
    (Floor::Words, &["clock", "secret", "event", "claim", "outcome", "retry", "rule"]),
    (Floor::Ports, &["source", "store", "handler", "reply", "shutdown", "metrics"]),
    (Floor::Engine, &["claims", "worker", "sweeper"]),
    (Floor::Adapters, ADAPTERS),
    (Floor::Application, &["server", "config", "telemetry", "app", "cli", "main", "lib"]),
    (Floor::Testing, &["testing"]),
];

/// Each with all that is below it.
const ADAPTERS: &[&str] = &[
    "source::pubsub",
    "source::replay",
    "store::memory",
    "store::sqlite",
    "store::postgres",
    "handler::http",
    "handler::exec",
    "handler::echo",
    "reply::chat",
    "pubsub_server",
];

/// The floor of a path such as `store::postgres::claim` or `store::StoreError`.
pub(super) fn floor_of(path: &str) -> Option<Floor> {
    if path.split("::").any(|part| part == "tests") {
        return Some(Floor::Testing);
    }
    if adapter(path).is_some() {
        return Some(Floor::Adapters);
    }
    let first = path.split("::").next()?;
    TABLE.iter().find(|(_, modules)| modules.contains(&first)).map(|(floor, _)| *floor)
}

/// The adapter that the path belongs to.
pub(super) fn adapter(path: &str) -> Option<&'static str> {
    ADAPTERS.iter().copied().find(|adapter| is_within(path, adapter))
}

/// The unit among which cycles are looked for: an adapter, or a module of the top level.
pub(super) fn unit(path: &str) -> String {
    adapter(path).or_else(|| path.split("::").next()).unwrap_or_default().to_owned()
}

fn is_within(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}
