//! The routes of one room, and what their handlers get.
//!
//! The paths of the rooms lie between each other, so no prefix tells them apart. Each room registers
//! its routes with a scope of its own, which hands the room's parts to them and to no others: here
//! is where a caller, with a tenant and rights, is to be attached. Must never know: handlers.

use actix_web::{
    FromRequest, Handler, Resource, Responder, Route,
    dev::HttpServiceFactory,
    guard,
    http::Method,
    middleware::Compress,
    web::{self, ServiceConfig},
};

/// The routes whose handlers take the parts `P`.
pub(super) struct Scope<'a, P> {
    config: &'a mut ServiceConfig,
    parts: web::Data<P>,
}

impl<'a, P: 'static> Scope<'a, P> {
    pub(super) fn new(config: &'a mut ServiceConfig, parts: P) -> Self {
        Self { config, parts: web::Data::new(parts) }
    }

    /// A route of one method; other methods of the path are other scopes' routes, or none.
    pub(super) fn route<F, Args>(&mut self, method: Method, path: &str, handler: F)
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let resource = self.resource(path).guard(guard::Method(method));
        self.add(resource.route(web::to(handler)));
    }

    /// A route of one method whose answers are compressed where the client takes it.
    pub(super) fn compressed<F, Args>(&mut self, method: Method, path: &str, handler: F)
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let resource = self.resource(path).guard(guard::Method(method)).wrap(Compress::default());
        self.add(resource.route(web::to(handler)));
    }

    /// A route of any method.
    pub(super) fn any(&mut self, path: &str, route: Route) {
        let resource = self.resource(path).route(route);
        self.add(resource);
    }

    /// A path whose routes are still to be said; see [`Scope::add`].
    pub(super) fn resource(&self, path: &str) -> Resource {
        web::resource(path).app_data(self.parts.clone())
    }

    /// Registers what was made of a resource.
    pub(super) fn add(&mut self, service: impl HttpServiceFactory + 'static) {
        self.config.service(service);
    }
}
