//! The routes of one area of the API, and the parts that its handlers receive.
//!
//! Areas share path prefixes, so a prefix does not identify an area. Each area registers its routes
//! with its own scope, which passes only to these routes the area's parts of the caller's project.
//! The check of keys is around each route, so it runs after routing: no other spelling of a path
//! avoids it. A route without a row in the table of rights is a bug that prevents the start.
//!
//! Must never know: handlers.

use std::rc::Rc;

use actix_web::{
    Error, FromRequest, Handler, Resource, Responder, Route,
    body::MessageBody,
    dev::{Extensions, ServiceFactory, ServiceRequest, ServiceResponse},
    guard,
    http::Method,
    middleware::{Compress, from_fn},
    web::{self, ServiceConfig},
};

use super::caller::{AccessParts, PartsOfProjects};
use crate::access::{Right, RouteRow, row_of};

/// The row of a route without one, which nobody may use; the start fails first.
const NO_ROW: RouteRow = RouteRow { methods: "*", path: "", right: Right::Control, audited: true };

/// The routes whose handlers use the parts `P`.
pub(super) struct Scope<'a, P> {
    config: &'a mut ServiceConfig,
    access: &'a AccessParts,
    /// The parts of the project `default`.
    parts: web::Data<P>,
    /// The parts of each project.
    of_projects: PartsOfProjects,
}

impl<'a, P: 'static> Scope<'a, P> {
    /// Creates the scope of an area with the parts of the project `default` and of the others.
    pub(super) fn new(
        config: &'a mut ServiceConfig,
        access: &'a AccessParts,
        (default, others): (P, Vec<P>),
    ) -> Self {
        let default = web::Data::new(default);
        let others = others.into_iter().map(web::Data::new);
        let parts: Vec<_> = std::iter::once(default.clone()).chain(others).collect();
        let container = |parts: &web::Data<P>| {
            let mut container = Extensions::new();
            container.insert(parts.clone());
            Rc::new(container)
        };
        let of_projects = parts.iter().map(container).collect();
        Self { config, access, parts: default, of_projects }
    }

    /// Registers a route for one method; other methods of the path may belong to other scopes.
    pub(super) fn route<F, Args>(&mut self, method: Method, path: &str, handler: F)
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let row = row_for(&method, path);
        let resource = self.resource(path).guard(guard::Method(method));
        self.register(row, resource.route(web::to(handler)));
    }

    /// Registers a route for one method with compressed responses for clients that accept them.
    pub(super) fn compressed<F, Args>(&mut self, method: Method, path: &str, handler: F)
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let row = row_for(&method, path);
        let resource = self.resource(path).guard(guard::Method(method)).wrap(Compress::default());
        self.register(row, resource.route(web::to(handler)));
    }

    /// Registers a route for any method; the row of GET applies to all.
    pub(super) fn any(&mut self, path: &str, route: Route) {
        let resource = self.resource(path).route(route);
        self.add(&Method::GET, path, resource);
    }

    /// Returns a path without routes; see [`Scope::add`].
    pub(super) fn resource(&self, path: &str) -> Resource {
        web::resource(path).app_data(self.parts.clone())
    }

    /// Registers a resource with its routes, of which one is for `method` and the others require
    /// the same right.
    pub(super) fn add<T, B>(&mut self, method: &Method, path: &str, resource: Resource<T>)
    where
        T: ServiceFactory<
                ServiceRequest,
                Config = (),
                Response = ServiceResponse<B>,
                Error = Error,
                InitError = (),
            > + 'static,
        B: MessageBody + 'static,
    {
        self.register(row_for(method, path), resource);
    }

    fn register<T, B>(&mut self, row: &'static RouteRow, resource: Resource<T>)
    where
        T: ServiceFactory<
                ServiceRequest,
                Config = (),
                Response = ServiceResponse<B>,
                Error = Error,
                InitError = (),
            > + 'static,
        B: MessageBody + 'static,
    {
        // Without access control, only the routes of changes need the wrapper, which records them.
        if !self.access.is_on && !row.audited {
            self.config.service(resource);
            return;
        }
        let (access, parts) = (self.access.clone(), self.of_projects.clone());
        // The last wrap runs first: before compression, and before a body is read.
        self.config.service(resource.wrap(from_fn(move |request, next| {
            access.clone().check((row, parts.clone()), request, next)
        })));
    }
}

/// Returns the row of a route. A route without a row is a bug.
fn row_for(method: &Method, path: &str) -> &'static RouteRow {
    let row = row_of(method.as_str(), path);
    assert!(row.is_some(), "{method} {path} has no row in src/access/routes.rs");
    row.unwrap_or(&NO_ROW)
}
