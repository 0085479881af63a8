//! Running a gateway: probes, metrics, what it has in memory, what it never shows, and how it ends.

mod ending;
mod health;
mod informers;
mod openapi;
mod owned;
mod secrets;
