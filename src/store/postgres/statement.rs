//! How a statement is sent: prepared and kept on a server of our own, or once and unnamed through a pooler.

use futures::{future::BoxFuture, stream::BoxStream};
use sqlx::{
    Database, Describe, Either, Error, Execute, Executor, PgConnection, Postgres, SqlStr,
    error::BoxDynError,
    postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};

/// A connection that sends prepared statements under a name only where the name is safe.
///
/// Behind a transaction pooler the server of the next statement may be another one, where the same name means
/// another client's statement. The checked macros always ask for a name; this takes the wish away.
#[derive(Debug)]
pub(super) struct Wire<'c> {
    pub(super) connection: &'c mut PgConnection,
    pub(super) named: bool,
}

impl<'c> Executor<'c> for Wire<'c> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        self.connection.fetch_many(Sent { query, named: self.named })
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        self.connection.fetch_optional(Sent { query, named: self.named })
    }

    fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        self.connection.prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        self.connection.describe(sql)
    }
}

struct Sent<E> {
    query: E,
    named: bool,
}

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Sent<E> {
    fn sql(self) -> SqlStr {
        self.query.sql()
    }

    fn statement(&self) -> Option<&<Postgres as Database>::Statement> {
        self.query.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.query.take_arguments()
    }

    fn persistent(&self) -> bool {
        self.named && self.query.persistent()
    }
}
