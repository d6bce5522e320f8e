//! PostgreSQL: a fresh database on the shared cluster, or a cluster of one's own that may be hurt.

use std::{
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use sqlx::{Connection, Executor, PgConnection};
use tempfile::TempDir;

use super::{from_run, ports, unique};

/// A database for one test.
#[derive(Debug)]
pub(crate) struct Postgres {
    url: String,
    cluster: Option<Cluster>,
}

#[derive(Debug)]
struct Cluster {
    folder: TempDir,
    port: u16,
}

impl Postgres {
    /// An empty database on the server that all tests share.
    pub(crate) async fn fresh() -> Self {
        let shared = from_run("BELLHOP_TEST_POSTGRES_URL");
        let url = create_database(&shared).await;
        Self { url, cluster: None }
    }

    /// An empty database on a server of its own, for tests that stop it.
    pub(crate) async fn own() -> Self {
        // Not the default place: another user must be able to walk there.
        let folder = tempfile::Builder::new().prefix("bellhop-pg.").tempdir_in("/tmp").expect("a temporary folder");
        open_to_all(&folder);
        let cluster = Cluster { folder, port: ports::free() };
        cluster.run("init", &[]);
        cluster.start();
        let url = create_database(&format!("postgres://postgres@127.0.0.1:{}/postgres", cluster.port)).await;
        Self { url, cluster: Some(cluster) }
    }

    /// Connection string.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A connection of the test's own, to look at what was written.
    pub(crate) async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("the test database answers")
    }

    /// One number out of the database.
    pub(crate) async fn count(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(&mut self.connect().await).await.expect("a count")
    }

    /// Stops the server as an administrator would: open transactions are rolled back.
    pub(crate) fn stop(&self) {
        self.own_cluster().run("stop", &[]);
    }

    /// Ends the server as a power cut would.
    pub(crate) fn kill(&self) {
        self.own_cluster().run("kill", &[]);
    }

    /// Starts it again on the same port, with what it held.
    pub(crate) fn start(&self) {
        self.own_cluster().start();
    }

    fn own_cluster(&self) -> &Cluster {
        self.cluster.as_ref().expect("only Postgres::own() may be hurt")
    }
}

impl Cluster {
    fn start(&self) {
        self.run("start", &[&self.port.to_string()]);
    }

    fn run(&self, command: &str, more: &[&str]) {
        let output = self.command(command, more).output().expect("postgres.sh runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "postgres.sh {command}: {error}");
    }

    fn command(&self, command: &str, more: &[&str]) -> Command {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/postgres.sh");
        let dir: PathBuf = self.folder.path().join("cluster");
        let mut line = Command::new(script);
        line.arg(command).arg(dir).args(more);
        line
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may be down already.
        let _stopped = self.command("stop", &["immediate"]).output();
    }
}

fn open_to_all(folder: &TempDir) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("own folder");
}

async fn create_database(server: &str) -> String {
    let name = unique("t").replace('-', "_");
    let mut connection = connect_patiently(server).await;
    connection
        .execute(sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}")))
        .await
        .expect("a database can be created");
    let (base, _) = server.rsplit_once('/').expect("a database in the address");
    format!("{base}/{name}")
}

async fn connect_patiently(server: &str) -> PgConnection {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match PgConnection::connect(server).await {
            Ok(connection) => return connection,
            Err(error) => assert!(Instant::now() < end, "PostgreSQL does not answer: {error}"),
        }
    }
}
