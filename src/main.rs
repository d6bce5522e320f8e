//! The `bellhop` binary.

use std::{io::Write, process::ExitCode};

use bellhop::cli::{self, Exit, Signals};
use tokio::runtime::Builder;

fn main() -> ExitCode {
    let exit = match Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let exit = runtime.block_on(start());
            // What still blocks a thread must not keep a process that is done.
            runtime.shutdown_background();
            exit
        }
        Err(error) => refuse(&error),
    };
    exit.into()
}

async fn start() -> Exit {
    // First of all: as process 1 of a container an uncaught SIGTERM would be ignored.
    let signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => return refuse(&error),
    };
    // One TLS provider for all; a second installation would be the only error.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    cli::run(std::env::args_os(), signals).await
}

fn refuse(error: &std::io::Error) -> Exit {
    drop(writeln!(std::io::stderr(), "error: can not start: {error}"));
    Exit::Failed
}
