//! A persistent read-only connection to a PostgreSQL server.

use std::time::Duration;

use tokio::{task::JoinHandle, time};
use tokio_postgres::{Client, Config, NoTls, Row};

use crate::settings::{ServerAddress, Service};

const PORT: u16 = 5432;

/// A connection with its background task.
pub(super) struct OpenConnection {
    client: Client,
    task: JoinHandle<()>,
    timeout: Duration,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // A hanging task would wait for the server to close the connection.
        self.task.abort();
    }
}

impl OpenConnection {
    pub(super) async fn new(service: &Service) -> Result<Self, String> {
        let Service { timeout, user, database, .. } = service;
        let mut config = Config::new();
        match service.server_address(PORT) {
            ServerAddress::Path(folder) => config.host_path(folder),
            ServerAddress::Tcp(host, port) => config.host(&host).port(port),
        };
        if let Some(password) = service.password()? {
            config.password(password);
        }
        let millis = timeout.as_millis();
        config
            .user(user.as_deref().unwrap_or("granary"))
            .dbname(database.as_deref().unwrap_or("postgres"))
            .application_name("granary-agent")
            .options(format!("-c statement_timeout={millis} -c default_transaction_read_only=on"))
            .tcp_user_timeout(*timeout)
            .keepalives_idle(Duration::from_secs(30));
        let (client, connection) = with_timeout(*timeout, config.connect(NoTls)).await?;
        let task = tokio::spawn(async move {
            // The next round reports the error.
            let _ended = connection.await;
        });
        Ok(Self { client, task, timeout: *timeout })
    }

    pub(super) async fn is_usable(&self) -> bool {
        with_timeout(self.timeout, self.client.check_connection()).await.is_ok()
    }

    pub(super) async fn query(&self, sql: &str) -> Result<Vec<Row>, String> {
        with_timeout(self.timeout, self.client.query(sql, &[])).await
    }
}

/// Waits for a response of the server, with a timeout.
async fn with_timeout<T>(
    timeout: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, String> {
    match time::timeout(timeout, answer).await {
        Ok(answer) => answer.map_err(|cause| error_message(&cause)),
        Err(_late) => Err(format!("took longer than {timeout:?}")),
    }
}

/// Returns the server's error message without the library's wrapping.
fn error_message(cause: &tokio_postgres::Error) -> String {
    cause.as_db_error().map_or_else(
        || {
            let source = std::error::Error::source(cause);
            source.map_or_else(|| cause.to_string(), |source| format!("{cause}: {source}"))
        },
        |refusal| format!("{} ({})", refusal.message(), refusal.code().code()),
    )
}
