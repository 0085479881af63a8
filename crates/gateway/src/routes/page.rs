//! The page: files that are part of the program.

use axum::{
    body::Body,
    extract::Path,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, header};
use informer_model::{Reason, Status};

use crate::answer::{self, Compressible, Refusal};

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        /// Each file of the page, by name.
        static FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../web/", $name)))),+];
    };
}

files![
    "api.js",
    "base.css",
    "columns.js",
    "connection.js",
    "dom.js",
    "drawer.css",
    "drawer.js",
    "events.js",
    "filters.js",
    "format.js",
    "grid.css",
    "grid.js",
    "header.css",
    "header.js",
    "health.css",
    "health.js",
    "hub.js",
    "icon.svg",
    "index.html",
    "keys.js",
    "main.js",
    "message.js",
    "order.js",
    "overview.js",
    "owners.js",
    "palette.js",
    "picker.js",
    "rows.js",
    "state.js",
    "stream.js",
    "subscription.js",
    "summary.js",
    "theme.js",
    "token.js",
    "widths.js",
    "yaml.js",
];

fn media_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// `GET /`
pub(crate) async fn index(headers: HeaderMap) -> Response {
    respond("index.html", &headers)
}

/// `GET /_page/{file}`
pub(crate) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    respond(&name, &headers)
}

fn respond(name: &str, headers: &HeaderMap) -> Response {
    let Some((name, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        return Refusal(Status::failure(Reason::NotFound, format!("the page has no file {name:?}")))
            .into_response();
    };
    let etag = answer::etag(&[name, text]);
    let mut response = if answer::is_known(headers, &etag) {
        answer::not_modified()
    } else {
        let mut response = Response::new(Body::from(*text));
        response.extensions_mut().insert(Compressible);
        response
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type(name)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::ETAG, etag);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_in_the_program() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/web");
        let names =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter(|name| media_type(name) != "application/octet-stream").collect();
        names.sort();
        assert_eq!(FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), names);
    }
}
