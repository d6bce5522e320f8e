//! TCP ports for servers that cannot pick one themselves.

use std::{
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicU32, Ordering},
};

/// Below the range from which the kernel serves outgoing connections.
const FIRST: u32 = 12_000;
const COUNT: u32 = 8_000;

/// A port on the loopback that nobody uses. Processes start at different places, so that tests side by side do not
/// reach for the same one between the look and the use.
pub(crate) fn free() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(61);
    for _ in 0..COUNT {
        let port = FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(port).expect("below 65536");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free TCP port between {FIRST} and {}", FIRST + COUNT);
}
