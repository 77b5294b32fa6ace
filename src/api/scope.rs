//! The routes of one area of the API, and the parts that its handlers receive.
//!
//! Areas share path prefixes, so a prefix does not identify an area. Each area registers its routes
//! with its own scope, which passes the area's parts only to these routes. Authentication of a
//! caller, with a tenant and permissions, belongs here. Must never know: handlers.

use actix_web::{
    FromRequest, Handler, Resource, Responder, Route,
    dev::HttpServiceFactory,
    guard,
    http::Method,
    middleware::Compress,
    web::{self, ServiceConfig},
};

/// The routes whose handlers use the parts `P`.
pub(super) struct Scope<'a, P> {
    config: &'a mut ServiceConfig,
    parts: web::Data<P>,
}

impl<'a, P: 'static> Scope<'a, P> {
    pub(super) fn new(config: &'a mut ServiceConfig, parts: P) -> Self {
        Self { config, parts: web::Data::new(parts) }
    }

    /// Registers a route for one method; other methods of the path may belong to other scopes.
    pub(super) fn route<F, Args>(&mut self, method: Method, path: &str, handler: F)
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let resource = self.resource(path).guard(guard::Method(method));
        self.add(resource.route(web::to(handler)));
    }

    /// Registers a route for one method with compressed responses for clients that accept them.
    pub(super) fn compressed<F, Args>(&mut self, method: Method, path: &str, handler: F)
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let resource = self.resource(path).guard(guard::Method(method)).wrap(Compress::default());
        self.add(resource.route(web::to(handler)));
    }

    /// Registers a route for any method.
    pub(super) fn any(&mut self, path: &str, route: Route) {
        let resource = self.resource(path).route(route);
        self.add(resource);
    }

    /// Returns a path without routes; see [`Scope::add`].
    pub(super) fn resource(&self, path: &str) -> Resource {
        web::resource(path).app_data(self.parts.clone())
    }

    /// Registers a resource with its routes.
    pub(super) fn add(&mut self, service: impl HttpServiceFactory + 'static) {
        self.config.service(service);
    }
}
