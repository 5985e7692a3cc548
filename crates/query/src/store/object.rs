//! [`FileStore`] as an object store, for whoever knows files by that interface. A location is the name of a file.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Attributes, CopyMode, CopyOptions, Error as StoreError, GetOptions, GetResult, GetResultPayload,
    ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, Result as StoreResult, UploadPart,
};
use tokio::sync::Mutex;

use super::medium::{Identity, Opened};
use super::{FileStore, Upload};
use crate::{Error, ErrorKind};

/// Bytes that a stream hands out at once.
const STREAM_BYTES: u64 = 4 << 20;
/// What errors call the store.
const STORE: &str = "tanada";

impl From<Error> for StoreError {
    fn from(error: Error) -> StoreError {
        let path = String::new();
        match error.kind() {
            ErrorKind::NotFound => StoreError::NotFound { path, source: Box::new(error) },
            _ => StoreError::Generic { store: STORE, source: Box::new(error) },
        }
    }
}

fn meta(location: &Path, identity: &Identity) -> ObjectMeta {
    let (seconds, nanos) =
        (identity.changed_ns.div_euclid(1_000_000_000), identity.changed_ns.rem_euclid(1_000_000_000));
    let changed = chrono::DateTime::from_timestamp(i64::try_from(seconds).unwrap_or(0), nanos as u32);
    ObjectMeta {
        location: location.clone(),
        last_modified: changed.unwrap_or_default(),
        size: identity.bytes,
        e_tag: Some(identity.etag()),
        version: None,
    }
}

impl FileStore {
    fn object(&self, location: &Path) -> StoreResult<(Arc<Opened>, ObjectMeta)> {
        let opened = self.opened(location.as_ref())?;
        let meta = meta(location, &opened.identity);
        Ok((opened, meta))
    }

    /// Files below a folder, those in its folders too.
    fn below(&self, folder: &str) -> StoreResult<Vec<ObjectMeta>> {
        let mut found = Vec::new();
        for entry in self.medium().entries(folder)? {
            let name = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            match entry.is_folder {
                true => found.extend(self.below(&name)?),
                false => found.push(self.object(&Path::parse(&name)?)?.1),
            }
        }
        Ok(found)
    }

    async fn upload(&self, location: &Path, mode: &PutMode) -> StoreResult<Upload> {
        let replaces = match mode {
            PutMode::Overwrite => true,
            PutMode::Create => false,
            PutMode::Update(_) => {
                let source = Box::new(Error::new(ErrorKind::Unsupported, "files have no versions to update"));
                return Err(StoreError::NotSupported { source });
            }
        };
        let created = self.create(location.as_ref(), replaces).await;
        created.map_err(|error| match (error.kind(), replaces) {
            (ErrorKind::InvalidInput, false) => {
                StoreError::AlreadyExists { path: location.to_string(), source: Box::new(error) }
            }
            _ => error.into(),
        })
    }

    /// The file's identity after it was written.
    fn put_result(&self, location: &Path) -> StoreResult<PutResult> {
        let opened = self.medium().open(location.as_ref(), self.executors().method())?;
        Ok(PutResult { e_tag: Some(opened.identity.etag()), version: None })
    }
}

#[async_trait]
impl ObjectStore for FileStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> StoreResult<PutResult> {
        let mut upload = self.upload(location, &opts.mode).await?;
        for part in payload {
            upload.append(&part).await?;
        }
        upload.commit().await?;
        self.put_result(location)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        _: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        let upload = self.upload(location, &PutMode::Overwrite).await?;
        let state = State { upload: Some(upload), early: BTreeMap::new(), appended: 0 };
        let state = Arc::new(Mutex::new(state));
        Ok(Box::new(Parts { state, count: 0, store: self.clone(), location: location.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        let (_, meta) = self.object(location)?;
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range.as_range(meta.size).map_err(|error| {
                let source = Box::new(Error::new(ErrorKind::InvalidInput, error.to_string()));
                StoreError::Generic { store: STORE, source }
            })?,
            None => 0..meta.size,
        };
        let (store, name, all) = (self.clone(), location.to_string(), range.clone());
        let starts = (0..).map(move |no: u64| all.start + no * STREAM_BYTES).take_while({
            let end = range.end;
            move |start| *start < end
        });
        let end = if options.head { range.start } else { range.end };
        let parts = stream::iter(starts).take_while(move |start| futures::future::ready(*start < end));
        let read = parts.then(move |start| {
            let (store, name) = (store.clone(), name.clone());
            async move { Ok(store.read_range(&name, start..end.min(start + STREAM_BYTES)).await?) }
        });
        let payload = GetResultPayload::Stream(read.boxed());
        Ok(GetResult { payload, meta, range, attributes: Attributes::new() })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> StoreResult<Vec<Bytes>> {
        Ok(self.read_ranges(location.as_ref(), ranges.to_vec()).await?)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        let store = self.clone();
        locations
            .and_then(move |location| {
                let store = store.clone();
                async move {
                    let (medium, name) = (Arc::clone(store.medium()), location.to_string());
                    let removed = store.executors().spawn(move || async move { medium.remove(&name).await });
                    removed.await.map_err(Error::from)??;
                    Ok(location)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let folder = prefix.map(ToString::to_string).unwrap_or_default();
        match self.below(&folder) {
            Ok(found) => stream::iter(found.into_iter().map(Ok)).boxed(),
            Err(StoreError::NotFound { .. }) => stream::empty().boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        let folder = prefix.map(ToString::to_string).unwrap_or_default();
        let mut result = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
        for entry in self.medium().entries(&folder)? {
            let name = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
            let path = Path::parse(&name)?;
            match entry.is_folder {
                true => result.common_prefixes.push(path),
                false => result.objects.push(self.object(&path)?.1),
            }
        }
        Ok(result)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        let mode = match options.mode {
            CopyMode::Overwrite => PutMode::Overwrite,
            CopyMode::Create => PutMode::Create,
        };
        let (_, meta) = self.object(from)?;
        let mut upload = self.upload(to, &mode).await?;
        let mut start = 0;
        while start < meta.size {
            let end = meta.size.min(start + STREAM_BYTES);
            upload.append(&self.read_range(from.as_ref(), start..end).await?).await?;
            start = end;
        }
        upload.commit().await?;
        Ok(())
    }
}

/// An upload of parts. Each is appended behind the one before, in whatever order they are polled.
#[derive(Debug)]
struct Parts {
    state: Arc<Mutex<State>>,
    /// Parts that were handed in.
    count: u64,
    store: FileStore,
    location: Path,
}

#[derive(Debug)]
struct State {
    upload: Option<Upload>,
    /// Parts that came before their predecessors.
    early: BTreeMap<u64, PutPayload>,
    appended: u64,
}

impl State {
    async fn put(&mut self, no: u64, data: PutPayload) -> StoreResult<()> {
        self.early.insert(no, data);
        while let Some(next) = self.early.remove(&self.appended) {
            let upload = self.upload.as_mut().ok_or_else(ended)?;
            for bytes in next {
                upload.append(&bytes).await?;
            }
            self.appended += 1;
        }
        Ok(())
    }
}

fn ended() -> StoreError {
    Error::new(ErrorKind::InvalidInput, "the upload has ended, or lacks a part").into()
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (state, no) = (Arc::clone(&self.state), self.count);
        self.count += 1;
        async move { state.lock().await.put(no, data).await }.boxed()
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        let mut state = self.state.lock().await;
        let upload = state.upload.take().filter(|_| state.appended == self.count).ok_or_else(ended)?;
        upload.commit().await?;
        self.store.put_result(&self.location)
    }

    async fn abort(&mut self) -> StoreResult<()> {
        drop(self.state.lock().await.upload.take());
        Ok(())
    }
}
