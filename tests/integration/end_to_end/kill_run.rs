//! Four replicas, one of them killed every second, while 2,000 events come in.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, Instant},
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use tokio::time;

use super::{
    super::harness::{
        Bellhop, Front,
        broker::ACK_DEADLINE,
        event::{Message, chat_message},
        handler::Call,
    },
    Behaviour, Broker, Ledger, World,
};

const EVENTS: usize = 2_000;
const DUPLICATES: usize = 200;
const REPLICAS: usize = 4;
const KILLS: usize = 40;
/// Time to settle what is left when nobody is killed any more: lease, grace and ack deadlines one after the other.
const SETTLED_WITHIN: Duration = Duration::from_secs(120);
/// An answered call is settled within this even on a busy machine; until then a kill makes its outcome unknown.
const SETTLING: Duration = Duration::from_millis(1_500);

/// When which replica was killed.
#[derive(Debug)]
struct Kill {
    replica: String,
    from: Instant,
    until: Instant,
}

pub(super) async fn rerun(broker: Broker) {
    let (world, kills) = run(broker, "rerun").await;

    let ledger = world.ledger().await;
    assert_eq!((ledger.done, ledger.quarantined), (EVENTS, 0), "{ledger:?}");
    let calls = by_event(&world);
    assert_eq!(calls.len(), EVENTS);
    for (label, calls) in &calls {
        for (earlier, later) in calls.iter().zip(&calls[1..]) {
            assert!(later.epoch > earlier.epoch, "epochs of {label}: {} then {}", earlier.epoch, later.epoch);
            assert!(was_in_flight(earlier, &kills), "{label} was called again though its owner lived: {earlier:?}");
        }
    }
}

pub(super) async fn strict(broker: Broker) {
    let (world, _kills) = run(broker, "quarantine").await;

    let ledger = world.ledger().await;
    assert_eq!(ledger.done + ledger.reason("owner_lost"), EVENTS, "{ledger:?}");
    assert_eq!(ledger.quarantined, ledger.reason("owner_lost"), "{ledger:?}");
    for (label, calls) in &by_event(&world) {
        assert_eq!(calls.len(), 1, "calls for {label}");
    }
}

async fn run(broker: Broker, on_unknown: &str) -> (World, Vec<Kill>) {
    let mut dice = StdRng::seed_from_u64(7);
    // Long enough that a kill finds some of them running.
    let world = World::new(broker, |call| {
        let luck = call.event_id.bytes().map(u64::from).sum::<u64>() % 700;
        Behaviour::After(Duration::from_millis(100 + luck), 200)
    })
    .await;
    let names: Vec<_> = (0..REPLICAS).map(|n| format!("replica-{n}")).collect();
    let mut fronts = Vec::new();
    for _ in &names {
        fronts.push(world.broker.front().await);
    }
    let setup = |(name, front): (&String, &Option<Front>)| {
        let replicas = u32::try_from(REPLICAS).expect("small");
        world
            .setup(replicas)
            .through(&front.as_ref().map_or_else(|| world.broker.address().to_owned(), Front::address))
            .handler(&world.handler.url_of(name))
            .set("retry.max_lost", 20)
            .set("handler.on_unknown", on_unknown)
            // So soon comes back what a dead replica held; leftovers are looked for longer than that.
            .set("pubsub.lease_extension", format!("{}s", ACK_DEADLINE.as_secs()))
            // Strict events whose owner was killed end in quarantine by the dozen: here that is no sign of trouble.
            .set("quarantine.max_per_minute", 10_000)
            .set("log.level", "info")
    };
    let mut replicas: Vec<_> = names.iter().zip(&fronts).map(|replica| Bellhop::spawn(&setup(replica))).collect();
    for replica in &mut replicas {
        replica.ready().await;
    }

    let mut batches = batches(&mut dice).into_iter();
    let mut kills = Vec::new();
    let mut seconds = time::interval(Duration::from_secs(1));
    for batch in batches.by_ref() {
        seconds.tick().await;
        world.subscription.publish(&batch).await;
        let victim = dice.random_range(0..REPLICAS);
        let from = Instant::now();
        replicas[victim].kill();
        kills.push(Kill { replica: names[victim].clone(), from, until: Instant::now() });
        replicas[victim].respawn();
    }
    let _settled: Ledger = world.settled_within(EVENTS, SETTLED_WITHIN).await;
    for replica in &mut replicas {
        replica.drain().await;
    }
    answer_what_is_left(&world, &mut replicas[0]).await;
    (world, kills)
}

/// When all events are settled, a message of one may still be with nobody: its replica was killed after the settle and
/// before the ack, or was drained while it kept the message beside another replica's claim. Whoever gets it acks it.
async fn answer_what_is_left(world: &World, replica: &mut Bellhop) {
    let left = world.subscription.leftovers().await.into_iter().filter_map(|left| left.message);
    let left: Vec<_> = left.map(|message| Message { data: message.data, attributes: message.attributes }).collect();
    if left.is_empty() {
        return;
    }

    world.subscription.publish(&left).await;
    replica.respawn();
    replica.ready().await;
    replica.acked(left.len()).await;
    replica.drain().await;
    world.assert_all_acked().await;
}

/// One batch for each second: every event once, and one in ten of them again, now or later.
fn batches(dice: &mut StdRng) -> Vec<Vec<Message>> {
    let mut batches = vec![Vec::new(); KILLS];
    for n in 0..EVENTS {
        let event = chat_message(&format!("event {n}"));
        let first = n * KILLS / EVENTS;
        if n % (EVENTS / DUPLICATES) == 0 {
            batches[dice.random_range(first..KILLS)].push(event.clone());
        }
        batches[first].push(event);
    }
    batches
}

fn by_event(world: &World) -> BTreeMap<String, Vec<Call>> {
    let mut events: BTreeMap<String, Vec<Call>> = BTreeMap::new();
    for call in world.handler.calls() {
        events.entry(call.label.clone()).or_default().push(call);
    }
    let ids: HashSet<_> = events.values().map(|calls| &calls[0].event_id).collect();
    assert_eq!(ids.len(), events.len(), "one id for each event");
    events
}

/// Whether the replica that made the call was killed before it can have settled it.
fn was_in_flight(call: &Call, kills: &[Kill]) -> bool {
    kills
        .iter()
        .filter(|kill| kill.replica == call.caller)
        .any(|kill| call.started <= kill.until && call.ended.is_none_or(|ended| ended + SETTLING >= kill.from))
}
