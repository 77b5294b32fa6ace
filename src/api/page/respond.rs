//! Responses with files of the page: encoding, caching, and the restrictions of the page in a
//! browser.
//!
//! Must never know: which paths exist.

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{self, AcceptEncoding, ETag, Encoding, EntityTag, Header, IfNoneMatch},
    },
};

use super::files::{File, Files, media_type};

/// The document for views without a document of their own.
const DOCUMENT: &str = "index.html";
/// The document when the page was not built.
const NO_PAGE: &str = include_str!("no_page.html");
/// The `Cache-Control` of assets, whose names change with their content.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// The `Cache-Control` of documents, which browsers revalidate before each use.
const REVALIDATE: &str = "no-cache";

/// The page may only load its own files and query the daemon, and no other site may frame it
/// (w3.org/TR/CSP3).
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; worker-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The page may not use the browser's devices and sensors.
const PERMISSIONS_POLICY: &str = "accelerometer=(), autoplay=(), camera=(), display-capture=(), \
     geolocation=(), gyroscope=(), hid=(), idle-detection=(), local-fonts=(), magnetometer=(), \
     microphone=(), midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), \
     serial=(), usb=(), xr-spatial-tracking=()";

/// Returns the document for a view, or instructions for building the page when it was not built.
pub(super) fn document(request: &HttpRequest, files: Files, view: &str) -> HttpResponse {
    let view_file = file(request, files, &format!("views/{view}.html"), REVALIDATE);
    let found = view_file.or_else(|| file(request, files, DOCUMENT, REVALIDATE));
    found.unwrap_or_else(|| {
        let mut response = builder(StatusCode::OK, REVALIDATE, DOCUMENT);
        response.body(NO_PAGE)
    })
}

/// Returns a file that a document loads; `None` when it does not exist.
pub(super) fn asset(request: &HttpRequest, files: Files, name: &str) -> Option<HttpResponse> {
    let is_plain = !name.contains(['/', '\\', '\0']) && !name.starts_with('.');
    // Compressed variants are served under the name of the file.
    let is_compressed = [".br", ".gz"].iter().any(|ending| name.ends_with(ending));
    if !is_plain || is_compressed {
        return None;
    }
    file(request, files, &format!("assets/{name}"), IMMUTABLE)
}

fn file(
    request: &HttpRequest,
    files: Files,
    path: &str,
    cache_control: &str,
) -> Option<HttpResponse> {
    let (encoding, File { bytes, fingerprint }) = encoded(request, files, path)?;
    let tag = EntityTag::new_strong(fingerprint);
    let known = IfNoneMatch::parse(request);
    let is_known = match known.as_ref().unwrap_or(&IfNoneMatch::Items(Vec::new())) {
        IfNoneMatch::Any => true,
        IfNoneMatch::Items(tags) => tags.iter().any(|known| known.weak_eq(&tag)),
    };
    let status = if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let mut response = builder(status, cache_control, path);
    response.insert_header(ETag(tag));
    if let Some(encoding) = encoding {
        response.insert_header((header::CONTENT_ENCODING, encoding));
    }
    Some(if is_known { response.finish() } else { response.body(bytes) })
}

/// Returns the variant of a file that the client prefers, with its encoding. Each variant has its
/// own tag.
fn encoded(
    request: &HttpRequest,
    files: Files,
    path: &str,
) -> Option<(Option<&'static str>, File)> {
    let plain = files(path)?;
    let compressed = |ending: &str| files(&format!("{path}{ending}"));
    let mut forms = vec![
        (Encoding::brotli(), compressed(".br").map(|file| (Some("br"), file))),
        (Encoding::gzip(), compressed(".gz").map(|file| (Some("gzip"), file))),
        (Encoding::identity(), Some((None, plain))),
    ];
    forms.retain(|(_, form)| form.is_some());
    let supported = forms.iter().map(|(encoding, _)| encoding);
    let chosen =
        AcceptEncoding::parse(request).ok().and_then(|accepted| accepted.negotiate(supported));
    // A client that accepts none of these encodings gets the plain file.
    let chosen = chosen.unwrap_or(Encoding::identity());
    forms.into_iter().find(|(encoding, _)| *encoding == chosen)?.1
}

/// Starts a response with the headers that all responses of the page share.
fn builder(status: StatusCode, cache_control: &str, path: &str) -> HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response
        .insert_header((header::CONTENT_TYPE, media_type(path)))
        .insert_header((header::CACHE_CONTROL, cache_control.to_owned()))
        .insert_header((header::VARY, "Accept, Accept-Encoding"))
        .insert_header((header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY))
        .insert_header((header::PERMISSIONS_POLICY, PERMISSIONS_POLICY))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CROSS_ORIGIN_OPENER_POLICY, "same-origin"));
    response
}

#[cfg(test)]
mod tests {
    use actix_web::{body::MessageBody, test::TestRequest, web::Bytes};

    use super::*;

    fn files(path: &str) -> Option<File> {
        let text = match path {
            "index.html" => "<html>",
            "index.html.br" => "br html",
            "views/host.html" => "host",
            "assets/index-1.js" => "script",
            "assets/index-1.js.br" => "br script",
            "assets/index-1.js.gz" => "gz script",
            "assets/icon-2.png" => "image",
            _ => return None,
        };
        let fingerprint = path.replace(['/', '.', '-'], "_");
        Some(File { bytes: Bytes::from_static(text.as_bytes()), fingerprint })
    }

    fn request(headers: &[(&'static str, &str)]) -> HttpRequest {
        let with = |request: TestRequest, pair: &(&'static str, &str)| request.insert_header(*pair);
        headers.iter().fold(TestRequest::default(), with).to_http_request()
    }

    fn body(response: HttpResponse) -> String {
        let bytes = response.into_body().try_into_bytes().unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn text<'a>(response: &'a HttpResponse, name: &str) -> &'a str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[test]
    fn each_client_gets_the_encoding_that_it_prefers() {
        for (accepted, encoding, expected) in [
            ("gzip, deflate, br, zstd", "br", "br script"),
            ("gzip", "gzip", "gz script"),
            ("gzip;q=1, br;q=0.5", "gzip", "gz script"),
            ("br;q=0, gzip;q=0", "", "script"),
            ("deflate", "", "script"),
            ("identity", "", "script"),
            ("nonsense;;q=x", "", "script"),
            ("", "", "script"),
        ] {
            let request = request(&[("accept-encoding", accepted)]);
            let response = asset(&request, files, "index-1.js").unwrap();
            assert_eq!(text(&response, "content-encoding"), encoding, "{accepted}");
            assert_eq!(text(&response, "content-type"), "text/javascript; charset=utf-8");
            assert_eq!(text(&response, "cache-control"), IMMUTABLE);
            assert!(text(&response, "vary").contains("Accept-Encoding"));
            assert_eq!(body(response), expected, "{accepted}");
        }
        let response = asset(&request(&[]), files, "index-1.js").unwrap();
        assert_eq!(body(response), "script");
        let accepts = request(&[("accept-encoding", "br, gzip")]);
        assert_eq!(body(asset(&accepts, files, "icon-2.png").unwrap()), "image");
    }

    #[test]
    fn a_client_with_the_same_variant_gets_not_modified() {
        let first = document(&request(&[("accept-encoding", "br")]), files, "none");
        assert_eq!((first.status(), text(&first, "cache-control")), (StatusCode::OK, REVALIDATE));
        let tag = text(&first, "etag").to_owned();
        for (known, status) in [
            (tag.clone(), 304),
            (format!("\"other\", W/{tag}"), 304),
            ("*".to_owned(), 304),
            ("\"other\"".to_owned(), 200),
            ("nonsense".to_owned(), 200),
        ] {
            let headers = [("accept-encoding", "br"), ("if-none-match", &known)];
            let response = document(&request(&headers), files, "none");
            assert_eq!(response.status().as_u16(), status, "{known}");
            assert_eq!(text(&response, "etag"), tag);
            assert_eq!(text(&response, "content-security-policy"), CONTENT_SECURITY_POLICY);
            assert_eq!(body(response).is_empty(), status == 304);
        }
        // The plain variant has another tag.
        let plain = document(&request(&[("if-none-match", &tag)]), files, "none");
        assert_eq!((plain.status().as_u16(), body(plain)), (200, "<html>".to_owned()));
    }

    #[test]
    fn a_view_has_its_own_document_or_the_default() {
        for (view, expected) in [("host", "host"), ("fleet", "<html>"), ("../x", "<html>")] {
            let response = document(&request(&[]), files, view);
            assert_eq!(text(&response, "content-type"), "text/html; charset=utf-8");
            assert_eq!(body(response), expected, "{view}");
        }
    }

    #[test]
    fn compressed_variants_and_files_outside_the_assets_are_not_served() {
        for name in ["index-1.js.br", "index-1.js.gz", "../index.html", ".env", "none.js", ""] {
            assert!(asset(&request(&[]), files, name).is_none(), "{name}");
        }
    }

    #[test]
    fn without_a_built_page_the_document_says_how_to_build_it() {
        let response = document(&request(&[("accept-encoding", "br")]), |_| None, "host");
        assert_eq!(text(&response, "content-type"), "text/html; charset=utf-8");
        assert_eq!(text(&response, "content-security-policy"), CONTENT_SECURITY_POLICY);
        let body = body(response);
        assert!(body.contains("npm run build"), "{body}");
        for inline in ["<script", "<style", "style=", "onload", "http:", "https:"] {
            assert!(!body.contains(inline), "{inline}");
        }
    }
}
