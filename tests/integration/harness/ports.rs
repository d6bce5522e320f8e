//! TCP ports for servers that cannot pick one themselves.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

/// Below the range from which the kernel serves outgoing connections.
const FIRST: u32 = 12_000;
const COUNT: u32 = 8_000;

/// Locks on the ports of this process, kept until it ends: a server that is killed and started again finds its port.
static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port on the loopback that nobody uses and that no other test is given as long as this process lives.
pub(crate) fn free() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let locks = std::env::temp_dir().join("bellhop-test-ports");
    fs::create_dir_all(&locks).expect("a folder for the locks");
    let start = std::process::id().wrapping_mul(61);
    for _ in 0..COUNT {
        let port = FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(port).expect("below 65536");
        let lock = File::create(locks.join(port.to_string())).expect("a lock file");
        if lock.try_lock().is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            RESERVED.lock().expect("no test panics here").push(lock);
            return port;
        }
    }
    panic!("no free TCP port between {FIRST} and {}", FIRST + COUNT);
}

#[test]
fn a_port_is_given_to_one_process_only() {
    let port = free();

    let again = File::create(std::env::temp_dir().join("bellhop-test-ports").join(port.to_string())).expect("a file");

    assert!(again.try_lock().is_err(), "{port} is reserved");
    assert_ne!(free(), port);
}
