//! Lists: everything or one page, at the version that was asked for.

use std::{ops::Bound, sync::Arc};

use informer_model::{ObjectKey, Status};

use super::{
    super::{ListItem, ListOptions, PageEnd, SourceError, VersionMatch},
    request::{Filter, Request, Rest, Wanted, check_list},
    state::{Objects, State, Stored},
};

impl<K> State<K> {
    /// The answer to a list: its items, or as many of them as arrive before the connection breaks.
    pub(super) fn list(
        &mut self,
        namespace: Option<Arc<str>>,
        options: ListOptions,
    ) -> Result<Vec<Result<ListItem<K>, SourceError>>, SourceError> {
        self.requests.push(Request::List(options.clone()));
        if let Some(failure) = self.faults.failing_lists.take() {
            return Err(failure);
        }
        let (objects, end) = self.page(namespace, &options)?;
        let item = |stored: Stored<K>| match stored.unusable() {
            Some(unusable) => ListItem::Unusable(unusable),
            None => ListItem::Object(stored.object),
        };
        let mut items: Vec<_> = objects.into_iter().map(item).map(Ok).collect();
        match self.faults.cut_list.take() {
            None => items.push(Ok(ListItem::End(end))),
            Some(after) => {
                items.truncate(after);
                items.push(Err(SourceError::Broken("cut, as asked for".to_owned())));
            }
        }
        Ok(items)
    }

    fn page(
        &self,
        namespace: Option<Arc<str>>,
        options: &ListOptions,
    ) -> Result<(Vec<Stored<K>>, PageEnd), Status> {
        check_list(options)?;
        let filter = Filter::new(namespace, options)?;
        let rest = options.continue_token.as_deref().map(Rest::decode).transpose()?;
        let mut limit = options.limit.filter(|limit| *limit > 0);
        let newest = || (self.newest(), self.version());
        let (objects, version) = match (&rest, Wanted::new(&options.resource_version)?) {
            (Some(_), Wanted::At(_)) => {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            (Some(rest), _) => match rest.version {
                Some(version) => (self.at(version).map_err(|status| resumable(status, rest))?, version),
                None => newest(),
            },
            (None, Wanted::Newest) => newest(),
            (None, Wanted::Any) => {
                // A server that answers from its cache gives all of it.
                limit = None;
                newest()
            }
            (None, Wanted::At(version)) => match (options.resource_version_match, limit) {
                (Some(VersionMatch::Exact), _) | (None, Some(_)) => (self.at(version)?, version),
                _ => {
                    self.reached(version)?;
                    newest()
                }
            },
        };
        Ok(cut(&objects, version, &filter, rest.as_ref(), limit))
    }
}

/// An expired list may go on at the newest version, with the token that the error carries.
fn resumable(status: Status, rest: &Rest) -> Status {
    if !status.is_expired() {
        return status;
    }
    let fresh = Rest { version: None, after: rest.after.clone() };
    Status::expired("The provided continue parameter is too old to display a consistent list result.")
        .with_continue(fresh.encode())
}

/// One page of what there is.
fn cut<K>(
    objects: &Objects<K>,
    version: u64,
    filter: &Filter,
    rest: Option<&Rest>,
    limit: Option<u32>,
) -> (Vec<Stored<K>>, PageEnd) {
    let start = rest.map_or(Bound::Unbounded, |rest| Bound::Excluded(&rest.after));
    let range = objects.range::<_, ObjectKey>((start, Bound::Unbounded)).map(|(_, stored)| stored);
    let mut selected = range.filter(|stored| filter.matches(&stored.object)).cloned();
    let limit = limit.map_or(usize::MAX, |limit| limit as usize);
    let page: Vec<Stored<K>> = selected.by_ref().take(limit).collect();
    let mut end = PageEnd { version: version.into(), ..PageEnd::default() };
    let remaining = selected.count();
    if let Some(last) = page.last().filter(|_| remaining > 0) {
        let rest = Rest { version: Some(version), after: last.object.key().clone() };
        end.continue_token = Some(rest.encode());
        end.remaining = filter.is_everything().then_some(remaining as u64);
    }
    (page, end)
}
