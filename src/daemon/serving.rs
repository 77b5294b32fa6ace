//! The HTTP server: connections, their handshakes and their time limits, for any application.
//!
//! Must never know: routes.

use std::{fmt, net::TcpListener};

use actix_http::{
    HttpService, Request, Response,
    body::{BoxBody, MessageBody},
    error::DispatchError,
};
use actix_server::{Server, ServerHandle};
use actix_service::{
    IntoServiceFactory, ServiceFactory, ServiceFactoryExt, fn_service, map_config,
};
use actix_web::dev::AppConfig;
use anyhow::Context;
use tokio::net::TcpStream;

use super::accepting::Accepting;
use crate::{
    actors::Lifeline,
    api::{Connections, OneAtATime},
    config::{Settings, bounds},
    kept::LiveValue,
    telemetry::Metrics,
    tls::{Handshakes, ServerTls, Stream},
};

/// The parts of a server besides its application.
pub(super) struct Serving {
    pub(super) tls: LiveValue<Option<ServerTls>>,
    pub(super) metrics: Metrics,
    /// The maximum number of blocking threads of a worker.
    pub(super) threads: usize,
}

impl Serving {
    /// Starts a server whose workers each create the application.
    pub(super) fn start<F, I, S, B>(
        self,
        settings: &Settings,
        listener: &TcpListener,
        app: F,
        mut lifeline: Lifeline,
    ) -> anyhow::Result<ServerHandle>
    where
        F: Fn() -> I + Send + Clone + 'static,
        I: IntoServiceFactory<S, Request>,
        S: ServiceFactory<Request, Config = AppConfig> + 'static,
        S::Error: Into<Response<BoxBody>> + 'static,
        S::InitError: fmt::Debug,
        S::Response: Into<Response<B>> + 'static,
        S::Service: 'static,
        B: MessageBody + 'static,
    {
        let Self { tls, metrics, threads } = self;
        let connections = Connections::new(&metrics, settings.server.client_timeout);
        let connections_max = settings.server.connections_max.div_ceil(bounds::worker_threads());
        let handshake_timeout = bounds::handshake_timeout(settings);
        let (client_timeout, keep_alive) = (settings.server.client_timeout, bounds::KEEP_ALIVE);
        let listener = listener.try_clone().context("copy the listener")?;
        let server = Server::build();
        let stop = server.graceful_shutdown_signal();
        let server = server
            .workers(bounds::worker_threads())
            .worker_max_blocking_threads(threads)
            .max_concurrent_connections(connections_max)
            .shutdown_timeout((bounds::SHUTDOWN_TIMEOUT / 4).as_secs())
            .disable_signals()
            .listen("http", listener, move || {
                let connections = connections.clone();
                // Half of the worker's connections, so that clients that never finish a handshake
                // leave room for others.
                let handshakes = Handshakes::new(connections_max.div_ceil(2), handshake_timeout);
                let (tls, metrics, stop) = (tls.clone(), metrics.clone(), stop.clone());
                let accepting = Accepting { tls, handshakes, metrics, stop: stop.clone() };
                let http = HttpService::build()
                    .graceful_shutdown_signal(move || {
                        let stop = stop.clone();
                        async move { stop.notified().await }
                    })
                    .keep_alive(keep_alive)
                    .client_request_timeout(client_timeout)
                    // The server ends the work for a client that has disconnected.
                    .h1_allow_half_closed(false)
                    .on_connect_ext(move |connection: &OneAtATime<Stream>, data| {
                        connections.count(connection, data);
                    })
                    .finish(map_config(app().into_factory(), |()| AppConfig::default()))
                    .map_err(log_fault);
                fn_service(move |stream: TcpStream| accepting.clone().accept(stream)).and_then(http)
            })
            .with_context(|| format!("listen on {}", settings.server.listen))?
            .run();
        let handle = server.handle();
        actix::spawn(async move {
            if let Err(cause) = server.await {
                tracing::error!(%cause, "the HTTP server failed");
            } else {
                lifeline.release();
            }
        });
        Ok(handle)
    }
}

/// Logs the reason why a connection ended: an error when the server failed, else a debug message,
/// because the client is the cause.
fn log_fault(fault: DispatchError) -> DispatchError {
    if matches!(fault, DispatchError::InternalError | DispatchError::HandlerDroppedPayload) {
        tracing::error!(%fault, "a connection failed");
    } else {
        tracing::debug!(%fault, "closed a connection: its request cannot be read or answered");
    }
    fault
}
