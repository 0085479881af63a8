//! List: one page or everything, at the version that was asked for.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures_util::stream;
use informer_model::{ProtobufList, Status};
use informer_serving::{
    envelope::{LIST_END, ListMeta},
    media::{Encoding, Shape},
    options::{Match, Requested},
    path::no_such_path,
};

use super::{Answer, Call};
use crate::{
    present::Presentation,
    respond::{self, BoxError},
    selection::Filter,
    store::{Reading, Stored, Unreadable},
    token::Rest,
};

/// About so many bytes of a list go out in one piece.
const PIECE: usize = 64 * 1024;

impl Call<'_> {
    pub(super) async fn list(self) -> Answer {
        let mut options = self.query.list()?;
        let presentation = self.presentation(Shape::List)?;
        let filter = Filter::new(&self.resource, self.place, &self.query)?;
        let rest = options.continue_from.as_deref().map(Rest::decode).transpose()?;
        let reading = match (&rest, options.version) {
            (Some(_), Requested::At(_)) => {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            (Some(rest), _) => match rest.version {
                Some(version) => self.page_at(version, rest).await?,
                None => self.newest()?,
            },
            (None, Requested::Unset) => self.newest()?,
            (None, Requested::Any) => {
                // A server that answers from its cache gives all of it.
                options.limit = None;
                self.at_hand()?
            }
            (None, Requested::At(version)) => match (options.version_match, options.limit) {
                (Some(Match::Exact), _) | (None, Some(_)) => {
                    self.reach_in_store(version).await?;
                    self.at(version)?
                }
                _ => {
                    self.reach(version).await?;
                    self.at_hand()?
                }
            },
        };
        let from = rest.as_ref().map(|rest| rest.start.as_str());
        let (objects, meta) = page(&reading, &filter, from, options.limit);
        answer(presentation, meta, objects).await
    }

    /// Everything as it was at a version.
    pub(super) fn at(&self, version: u64) -> Result<Reading, Status> {
        self.server.store.at(self.id, version).map_err(|unreadable| match unreadable {
            Unreadable::Gone => no_such_path(),
            Unreadable::Expired => Status::expired("The resourceVersion for the provided list is too old."),
        })
    }

    /// A later page of a list. When its version is gone, the client may go on at the newest instead.
    async fn page_at(&self, version: u64, rest: &Rest) -> Result<Reading, Status> {
        self.reach_in_store(version).await?;
        self.at(version).map_err(|status| {
            if !status.is_expired() {
                return status;
            }
            let fresh = Rest { version: None, start: rest.start.clone() };
            Status::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a \
                 new list without the continue parameter, or use the continue token in this response to retrieve the \
                 remainder of the results, which will not be consistent with the first part of the list.",
            )
            .with_continue(fresh.encode())
        })
    }
}

/// The objects of one page and what the list says of itself.
fn page(
    reading: &Reading,
    filter: &Filter,
    from: Option<&str>,
    limit: Option<usize>,
) -> (Vec<Arc<Stored>>, ListMeta) {
    let mut objects = filter.range(&reading.objects, from).filter(|object| filter.matches(object));
    let limit = limit.unwrap_or(usize::MAX);
    let mut taken: Vec<Arc<Stored>> = Vec::new();
    let mut meta = ListMeta { version: reading.version.to_string(), ..ListMeta::default() };
    for object in objects.by_ref() {
        if taken.len() == limit {
            let last = taken.last().map_or("", |object| object.key.as_str());
            meta.continue_from = Some(Rest::after(last, Some(reading.version)).encode());
            meta.remaining = filter.is_everything().then(|| 1 + objects.count());
            break;
        }
        taken.push(Arc::clone(object));
    }
    (taken, meta)
}

/// A list as the answer.
pub(super) async fn answer(presentation: Presentation, meta: ListMeta, objects: Vec<Arc<Stored>>) -> Answer {
    Ok(match presentation.encoding() {
        Encoding::Json => respond::list(Encoding::Json, json(presentation, meta, objects)),
        Encoding::Protobuf => {
            let pieces = protobuf(&presentation, &meta, &objects).await?;
            respond::list(Encoding::Protobuf, stream::iter(pieces.into_iter().map(Ok)))
        }
    })
}

/// A list in protobuf, in pieces that are all made before the first is sent: their length stands before them.
async fn protobuf(
    presentation: &Presentation,
    meta: &ListMeta,
    objects: &[Arc<Stored>],
) -> Result<VecDeque<Bytes>, Status> {
    let list = presentation.protobuf_list()?;
    let mut pieces = VecDeque::new();
    let mut piece = Vec::with_capacity(PIECE + PIECE / 4);
    for object in objects {
        presentation.protobuf_item(&list, object, &mut piece)?;
        if piece.len() >= PIECE {
            pieces.push_back(Bytes::copy_from_slice(&piece));
            piece.clear();
            // A long list must not keep others from their turn.
            tokio::task::yield_now().await;
        }
    }
    let length = pieces.iter().map(Bytes::len).sum::<usize>() + piece.len();
    let start = list.start(&meta.json(), length);
    pieces.push_front(start.map_err(|error| Status::internal_error(error.to_string()))?.into());
    piece.extend_from_slice(ProtobufList::END);
    pieces.push_back(piece.into());
    Ok(pieces)
}

/// A list in pieces, made as they are wanted: it is never whole in memory.
fn json(
    presentation: Presentation,
    meta: ListMeta,
    objects: Vec<Arc<Stored>>,
) -> impl futures_util::Stream<Item = Result<Bytes, BoxError>> + Send {
    let mut objects = objects.into_iter();
    let mut start = Some(presentation.envelope.list_start(&meta));
    let mut first = true;
    let mut ended = false;
    stream::iter(std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let mut piece = Vec::with_capacity(PIECE + PIECE / 4);
        piece.extend_from_slice(start.take().unwrap_or_default().as_bytes());
        while piece.len() < PIECE {
            let Some(object) = objects.next() else {
                piece.extend_from_slice(LIST_END.as_bytes());
                ended = true;
                break;
            };
            if !std::mem::take(&mut first) {
                piece.push(b',');
            }
            presentation.list_item(&object, &mut piece);
        }
        Some(Ok(piece.into()))
    }))
}
