//! Lists over HTTP: the plain lists, queries, pages, and how fresh an answer is.

mod answers;
mod pages;
mod plain_lists;
mod queries;
