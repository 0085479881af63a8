//! Lists that are read page by page, each from the moment at which its first page was read.
//!
//! What was selected stays pinned under a token until it is read to its end, or for a few minutes: no page repeats or
//! leaves out an object, whatever changes meanwhile. What is pinned costs a handle for each object, and is bounded.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use informer_model::Status;
use rand::RngExt;
use rand_pcg::Pcg32;
use tokio::time::Instant;

use crate::query::selection::Selection;

/// How long a list stays after it was last read from.
const KEEP: Duration = Duration::from_secs(300);
/// How many lists, and objects in all of them, are pinned at most.
const LISTS: usize = 256;
const OBJECTS: usize = 4_000_000;

/// The lists that are being read.
#[derive(Default)]
pub(crate) struct Pages {
    pinned: Mutex<VecDeque<Pinned>>,
}

struct Pinned {
    id: u128,
    /// What was asked for, and by whom: nobody else can go on with it.
    question: String,
    selection: Arc<Selection>,
    read: Instant,
}

/// A part of a selection.
pub(crate) struct Page {
    pub(crate) selection: Arc<Selection>,
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Where the next page begins, if there is one.
    pub(crate) next: Option<String>,
}

impl Page {
    /// How many objects come after this page.
    pub(crate) fn remaining(&self) -> usize {
        self.selection.objects.len() - self.to
    }
}

impl Pages {
    /// The first page of a selection: all of it, where there is no limit.
    pub(crate) fn first(&self, question: String, selection: Selection, limit: Option<usize>) -> Page {
        let selection = Arc::new(selection);
        let all = selection.objects.len();
        let to = limit.unwrap_or(all).min(all);
        let next = (to < all).then(|| {
            let id = rand::make_rng::<Pcg32>().random();
            let read = Instant::now();
            self.pin(Pinned { id, question, selection: Arc::clone(&selection), read });
            token(id, to)
        });
        Page { selection, from: 0, to, next }
    }

    /// The page that begins where an earlier one said.
    pub(crate) fn next(&self, question: &str, token: &str, limit: Option<usize>) -> Result<Page, Status> {
        let (id, from) = parse(token).ok_or_else(|| {
            Status::bad_request(format!("continue={token:?} is not a token that this gateway has given"))
        })?;
        let mut pinned = self.pinned();
        let Some(at) = pinned.iter().position(|pinned| pinned.id == id) else {
            return Err(Status::expired(
                "the list that continue= belongs to is gone: it is kept for five minutes; start again without continue=",
            ));
        };
        let Some(mut list) = pinned.remove(at) else { return Err(Status::internal_error("a list got lost")) };
        let selection = Arc::clone(&list.selection);
        let all = selection.objects.len();
        let fits = list.question == question && from <= all;
        let to = limit.map_or(all, |limit| from.saturating_add(limit)).min(all);
        if !fits || to < all {
            list.read = Instant::now();
            pinned.push_back(list);
        }
        if !fits {
            return Err(Status::bad_request(
                "continue= belongs to another query: repeat all other parameters as they were",
            ));
        }
        Ok(Page { selection, from, to, next: (to < all).then(|| self::token(id, to)) })
    }

    /// Lets go of what has not been read from in a long time.
    pub(crate) fn sweep(&self) {
        drop(self.pinned());
    }

    fn pin(&self, list: Pinned) {
        let mut pinned = self.pinned();
        pinned.push_back(list);
        let mut objects: usize = pinned.iter().map(|pinned| pinned.selection.objects.len()).sum();
        // The one that was read from the longest ago is first.
        while pinned.len() > 1 && (pinned.len() > LISTS || objects > OBJECTS) {
            objects -= pinned.pop_front().map_or(0, |first| first.selection.objects.len());
        }
    }

    fn pinned(&self) -> MutexGuard<'_, VecDeque<Pinned>> {
        let mut pinned = self.pinned.lock().unwrap_or_else(PoisonError::into_inner);
        pinned.retain(|pinned| pinned.read.elapsed() <= KEEP);
        pinned
    }
}

fn token(id: u128, from: usize) -> String {
    format!("{id:032x}.{from}")
}

fn parse(token: &str) -> Option<(u128, usize)> {
    let (id, from) = token.split_once('.')?;
    Some((u128::from_str_radix(id, 16).ok()?, from.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use informer::{Object, RawObject, store};
    use tokio::time::advance;

    use super::*;
    use crate::{access::Visible, query::Query};

    /// So many objects.
    fn mk_selection(objects: usize) -> Selection {
        let (mut writer, store) = store::new::<RawObject>();
        writer.write(|batch| {
            for n in 0..objects {
                let json = format!(r#"{{"metadata":{{"namespace":"default","name":"object-{n}"}}}}"#);
                batch.insert(Object::new(RawObject::new(json).unwrap()).unwrap());
            }
        });
        Query::default().select(&store.snapshot(), &Visible::All)
    }

    /// The token of the second page of a new list.
    fn begin(pages: &Pages, question: &str) -> String {
        pages.first(question.to_owned(), mk_selection(3), Some(1)).next.unwrap()
    }

    fn code(page: Result<Page, Status>) -> u16 {
        page.map_or_else(|status| status.code, |_| 200)
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_kept_for_five_minutes_after_it_was_last_read_from() {
        let pages = Pages::default();
        let token = begin(&pages, "q");
        for _ in 0..3 {
            advance(KEEP).await;
            assert_eq!(code(pages.next("q", &token, Some(1))), 200);
        }
        advance(KEEP + Duration::from_secs(1)).await;
        pages.sweep();
        assert_eq!(pages.pinned.lock().unwrap().len(), 0, "nobody has to come for it to go");
        assert_eq!(code(pages.next("q", &token, Some(1))), 410);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_read_in_one_go_or_to_its_end_is_not_kept() {
        let pages = Pages::default();
        assert!(pages.first("q".to_owned(), mk_selection(3), None).next.is_none());
        assert!(pages.first("q".to_owned(), mk_selection(3), Some(3)).next.is_none());
        let token = begin(&pages, "q");
        let page = pages.next("q", &token, None).unwrap();
        assert_eq!((page.from, page.to, page.next.is_none(), page.remaining()), (1, 3, true, 0));
        assert!(pages.pinned.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn of_too_many_lists_the_one_that_was_read_from_the_longest_ago_goes() {
        let pages = Pages::default();
        let tokens: Vec<String> = (0..LISTS).map(|_| begin(&pages, "q")).collect();
        assert_eq!(code(pages.next("q", &tokens[0], Some(1))), 200);
        begin(&pages, "q");
        assert_eq!(pages.pinned.lock().unwrap().len(), LISTS);
        assert_eq!(code(pages.next("q", &tokens[0], Some(1))), 200, "it was read from just now");
        assert_eq!(code(pages.next("q", &tokens[1], Some(1))), 410);
        assert_eq!(code(pages.next("q", &tokens[2], Some(1))), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_for_who_asked_and_refusals_do_not_end_it() {
        let pages = Pages::default();
        let token = begin(&pages, "pods as ann");
        assert_eq!(code(pages.next("pods as eve", &token, None)), 400);
        assert_eq!(code(pages.next("pods as ann", &token, Some(1))), 200);
        let other = begin(&pages, "pods as ann");
        assert_ne!(token, other, "tokens are not guessed from one another");
    }
}
