/*
 * tanada_kv.h: the key-value engine of Tanada for programs in C.
 *
 * A database lies in a volume: a folder that `tanada volume create` or tanada_kv_create_volume makes. All calls block;
 * all may be called from any thread, a cursor or a transaction from one at a time. Keys and values are any bytes.
 *
 * Calls give TANADA_KV_OK, or another code; then tanada_kv_error() tells what failed, in words, until the next call on
 * the same thread.
 */
#ifndef TANADA_KV_H
#define TANADA_KV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tanada_kv tanada_kv;
typedef struct tanada_kv_store tanada_kv_store;
typedef struct tanada_kv_cursor tanada_kv_cursor;
typedef struct tanada_kv_transaction tanada_kv_transaction;
typedef struct tanada_kv_batch tanada_kv_batch;
typedef struct tanada_kv_snapshot tanada_kv_snapshot;
typedef struct tanada_kv_load tanada_kv_load;

enum {
    TANADA_KV_OK = 0,
    TANADA_KV_NOT_FOUND = 1,    /* no such key, database or store; the end of a cursor */
    TANADA_KV_INVALID = 2,      /* the arguments are wrong */
    TANADA_KV_EXISTS = 3,       /* there is one already */
    TANADA_KV_CONFLICT = 4,     /* another transaction was first: begin again */
    TANADA_KV_NO_SPACE = 5,     /* everything can still be read */
    TANADA_KV_READ_ONLY = 6,
    TANADA_KV_LOCKED = 7,       /* another process has it, or it is open already */
    TANADA_KV_CORRUPTED = 8,    /* bytes on a device are not what was written, or a later version wrote them */
    TANADA_KV_DEVICE = 9,       /* a device failed: close and open again, with all other databases of the volume */
    TANADA_KV_CLOSED = 10,
    TANADA_KV_PANIC = 11        /* a defect of the engine */
};

/* Flags of tanada_kv_open. */
enum {
    TANADA_KV_CREATE = 1,       /* make the database if there is none */
    TANADA_KV_READ = 2          /* change nothing */
};

/* Flags of writes. */
enum {
    TANADA_KV_SYNC = 1,         /* durable before the call returns; else as the database is set: within 100 ms */
    TANADA_KV_UNCOMPRESSED = 2, /* one of these three, for long values; without one as the store has it */
    TANADA_KV_LZ4 = 4,
    TANADA_KV_ZSTD = 8
};

/* Flags of cursors. */
enum {
    TANADA_KV_KEYS_ONLY = 1     /* values are not read, and come empty */
};

/* Another flag of writes: durable within so many milliseconds, from 1 to 1000. */
#define TANADA_KV_WITHIN_MS(ms) ((uint32_t)(ms) << 16)

/* What the last call on this thread that failed says; never NULL. */
const char *tanada_kv_error(void);

/* Makes a volume with one class of `bytes` in the folder `path`. */
int tanada_kv_create_volume(const char *path, uint64_t bytes);

/*
 * Opens a database. Several of one volume may be open at once: they share the volume, which the first one opens and the
 * last one that is closed closes. Each is open once for writing, or for reading as often as one likes; else
 * TANADA_KV_LOCKED, and so if the volume is open for reading alone and is to be written.
 */
int tanada_kv_open(const char *volume, const char *database, uint32_t flags, tanada_kv **out);

/*
 * The same with settings: JSON with the names and values of docs/kv-tuning.md, such as {"memory_bytes": 67108864,
 * "durability": {"within": 10}}. What is left out stays as the database has it; one that is made has the defaults. They
 * are kept, unless the database is opened with TANADA_KV_READ. null takes a limit away ({"fast_class_bytes": null});
 * settings that are NULL are as tanada_kv_open.
 */
int tanada_kv_open_with(const char *volume, const char *database, uint32_t flags, const char *settings,
                        tanada_kv **out);

/*
 * The same. After a stop an opening replays the log, and calls `progress` with `context` before it returns, perhaps on
 * another thread: how many bytes of the log it has read, and of how many at most.
 */
int tanada_kv_open_telling(const char *volume, const char *database, uint32_t flags, const char *settings,
                                 void (*progress)(void *context, uint64_t replayed_bytes, uint64_t total_bytes),
                                 void *context, tanada_kv **out);

/*
 * Changes settings while the database is in use, for good: JSON as above, and what is left out stays. fast_class_bytes,
 * durability, waiting_tables, slow_root_kvsets, most_root_kvsets, log_replay_bytes and manifest_bytes can
 * be changed so; the others at an opening, else TANADA_KV_INVALID, and nothing is changed. The second call changes the
 * limit of what the database has on the fastest class alone, 0 for none: what is beyond it moves beside other work.
 */
int tanada_kv_set_settings(tanada_kv *database, const char *settings);
int tanada_kv_set_fast_class_bytes(tanada_kv *database, uint64_t bytes);

/*
 * Makes everything durable. Stores, cursors and transactions have to be given back before. The handle is gone whatever
 * is returned.
 */
int tanada_kv_close(tanada_kv *database);

/* Makes everything durable that was written before. */
int tanada_kv_sync(tanada_kv *database);

/* Opens a store; makes it with TANADA_KV_CREATE. */
int tanada_kv_store_open(tanada_kv *database, const char *name, uint32_t flags, tanada_kv_store **out);
void tanada_kv_store_free(tanada_kv_store *store);

/*
 * The same; a store that is made has these settings: JSON such as {"compression": "lz4", "policy": "staging_only"}.
 * NULL for the defaults.
 */
int tanada_kv_store_open_with(tanada_kv *database, const char *name, uint32_t flags, const char *settings,
                              tanada_kv_store **out);

/*
 * Changes settings of a store while it is in use, for good: JSON such as {"compression": "lz4"}. What is left out
 * stays, and null takes a limit away. They count for what is written and for files that are made from then on. If
 * anything is wrong, nothing is changed.
 */
int tanada_kv_store_set_settings(tanada_kv_store *store, const char *settings);

/*
 * Changes which classes keys and values go to, for good: JSON, the name of a template in quotes or an object. What
 * lies elsewhere is moved beside other work, and by tanada_kv_compact at once.
 */
int tanada_kv_set_policy(tanada_kv_store *store, const char *policy);

/* The names of the stores, in order of their making: a JSON list, to be given back by tanada_kv_free. */
int tanada_kv_stores(tanada_kv *database, void **json, size_t *json_len);

/* Deletes a store with all that it holds. A handle of it can be given back, and is of no other use. */
int tanada_kv_store_drop(tanada_kv *database, const char *name);

/* Brings the store into order: afterwards each key is in one place, and everything where the policy says. */
int tanada_kv_compact(tanada_kv_store *store);

int tanada_kv_put(tanada_kv_store *store, const void *key, size_t key_len, const void *value, size_t value_len,
                  uint32_t flags);

/* The same; the key counts as deleted so many seconds later. 0 is as the store has it. */
int tanada_kv_put_expiring(tanada_kv_store *store, const void *key, size_t key_len, const void *value,
                           size_t value_len, uint32_t time_to_live_s, uint32_t flags);

int tanada_kv_delete(tanada_kv_store *store, const void *key, size_t key_len, uint32_t flags);
int tanada_kv_delete_prefix(tanada_kv_store *store, const void *prefix, size_t prefix_len, uint32_t flags);

/* Deletes the keys from `start` on that are smaller than `end`; all from `start` on if `end` is NULL. */
int tanada_kv_delete_range(tanada_kv_store *store, const void *start, size_t start_len, const void *end,
                           size_t end_len, uint32_t flags);

/*
 * A batch, over stores of one database: all of it is written, or nothing. Of two operations on one key the later one
 * counts.
 */
int tanada_kv_batch_new(tanada_kv_batch **out);
int tanada_kv_batch_put(tanada_kv_batch *batch, tanada_kv_store *store, const void *key, size_t key_len,
                        const void *value, size_t value_len);
int tanada_kv_batch_delete(tanada_kv_batch *batch, tanada_kv_store *store, const void *key, size_t key_len);
int tanada_kv_batch_delete_range(tanada_kv_batch *batch, tanada_kv_store *store, const void *start, size_t start_len,
                                 const void *end, size_t end_len);

/*
 * All three end it; the handle is gone whatever is returned. What the second puts counts as deleted so many seconds
 * later; 0 is as the stores have it.
 */
int tanada_kv_write(tanada_kv *database, tanada_kv_batch *batch, uint32_t flags);
int tanada_kv_write_expiring(tanada_kv *database, tanada_kv_batch *batch, uint32_t time_to_live_s, uint32_t flags);
void tanada_kv_batch_free(tanada_kv_batch *batch);

/* The value is the caller's, to be given back with tanada_kv_free. */
int tanada_kv_get(tanada_kv_store *store, const void *key, size_t key_len, void **value, size_t *value_len);
void tanada_kv_free(void *value, size_t value_len);

/*
 * A cursor over keys that begin with the prefix, as they are now. What next and previous give is the cursor's until
 * its next call.
 */
int tanada_kv_cursor_open(tanada_kv_store *store, const void *prefix, size_t prefix_len, tanada_kv_cursor **out);

/*
 * The same, as a snapshot has the keys unless it is NULL, with TANADA_KV_KEYS_ONLY or 0. Who knows how many keys will
 * be read from where the cursor is set to says so: they are read in few steps, and none in vain; 0 if it is not known.
 */
int tanada_kv_cursor_open_with(tanada_kv_store *store, tanada_kv_snapshot *snapshot, const void *prefix,
                               size_t prefix_len, uint32_t flags, size_t expected_keys, tanada_kv_cursor **out);

/* Has it see what is there now; it stays where it is. One of a transaction goes on to see that. */
int tanada_kv_cursor_refresh(tanada_kv_cursor *cursor);
int tanada_kv_cursor_seek(tanada_kv_cursor *cursor, const void *key, size_t key_len);
int tanada_kv_cursor_seek_to_begin(tanada_kv_cursor *cursor);
int tanada_kv_cursor_seek_to_end(tanada_kv_cursor *cursor);
int tanada_kv_cursor_next(tanada_kv_cursor *cursor, const void **key, size_t *key_len, const void **value,
                          size_t *value_len);
int tanada_kv_cursor_previous(tanada_kv_cursor *cursor, const void **key, size_t *key_len, const void **value,
                              size_t *value_len);
void tanada_kv_cursor_free(tanada_kv_cursor *cursor);

/* What is there now, in all stores, to be read later. To be given back before the database is closed. */
int tanada_kv_snapshot_take(tanada_kv *database, tanada_kv_snapshot **out);
int tanada_kv_get_at(tanada_kv_store *store, tanada_kv_snapshot *snapshot, const void *key, size_t key_len,
                     void **value, size_t *value_len);
int tanada_kv_cursor_open_at(tanada_kv_store *store, tanada_kv_snapshot *snapshot, const void *prefix,
                             size_t prefix_len, tanada_kv_cursor **out);
void tanada_kv_snapshot_free(tanada_kv_snapshot *snapshot);

/* A transaction over all stores: it reads from a snapshot and sees its own writes. */
int tanada_kv_begin(tanada_kv *database, int serializable, tanada_kv_transaction **out);
int tanada_kv_transaction_put(tanada_kv_transaction *transaction, tanada_kv_store *store, const void *key,
                              size_t key_len, const void *value, size_t value_len);
int tanada_kv_transaction_delete(tanada_kv_transaction *transaction, tanada_kv_store *store, const void *key,
                                 size_t key_len);
int tanada_kv_transaction_delete_range(tanada_kv_transaction *transaction, tanada_kv_store *store, const void *start,
                                       size_t start_len, const void *end, size_t end_len);

/* A cursor over what the transaction sees now, with TANADA_KV_KEYS_ONLY or 0; the transaction may end before it. */
int tanada_kv_transaction_cursor_open(tanada_kv_transaction *transaction, tanada_kv_store *store, const void *prefix,
                                      size_t prefix_len, uint32_t flags, tanada_kv_cursor **out);
int tanada_kv_transaction_get(tanada_kv_transaction *transaction, tanada_kv_store *store, const void *key,
                              size_t key_len, void **value, size_t *value_len);

/* Both end it; the handle is gone whatever is returned. */
int tanada_kv_commit(tanada_kv_transaction *transaction, uint32_t flags);
void tanada_kv_rollback(tanada_kv_transaction *transaction);

/*
 * A load of keys in ascending order, past the log: each byte is written once. It is seen as a whole when
 * tanada_kv_load_finish returns, but not by snapshots, transactions and cursors that were there before. The store can
 * be read and written meanwhile; another load of it and tanada_kv_compact wait until this one is finished or given up.
 * TANADA_KV_CONFLICT if so much is written to it that no moment is found to begin.
 */
int tanada_kv_load_begin(tanada_kv_store *store, tanada_kv_load **out);
int tanada_kv_load_put(tanada_kv_load *load, const void *key, size_t key_len, const void *value, size_t value_len);

/* Both end it; the handle is gone whatever is returned. The second gives it up: nothing of it is there then. */
int tanada_kv_load_finish(tanada_kv_load *load);
void tanada_kv_load_free(tanada_kv_load *load);

/* Copies the database as it is now to another name in its volume, while it is in use. */
int tanada_kv_checkpoint(tanada_kv *database, const char *name);

/*
 * The names of all databases of a volume: a JSON list, to be given back by tanada_kv_free. The volume may be open, in
 * this process, or not.
 */
int tanada_kv_databases(const char *volume, void **json, size_t *json_len);

/* Deletes a database. TANADA_KV_LOCKED if it is open. */
int tanada_kv_destroy(const char *volume, const char *database);

/*
 * Empties a class of the volume, while its databases are in use: everything is moved to other classes, and nothing new
 * goes there until tanada_kv_fill_class. Then `tanada volume class remove` can take it away. TANADA_KV_NO_SPACE if the
 * other classes cannot take all of it: what was moved stays moved, and the class goes on to take nothing.
 */
int tanada_kv_drain_class(tanada_kv *database, const char *class_name);
int tanada_kv_fill_class(tanada_kv *database, const char *class_name);

/*
 * What they give is JSON, without a zero at its end, to be given back by tanada_kv_free.
 *
 * tanada_kv_check reads everything and verifies every checksum: how much that was, and "findings", a list of what is
 * wrong. If there are any, it gives the JSON all the same, and TANADA_KV_CORRUPTED; "damaged_copies" are none, for what
 * they repeat is read instead. tanada_kv_statistics has counters since the opening and, as "lifetime", over all
 * openings, and what there is now, by class and by store. The last two have all settings as they are now, the policy
 * too.
 */
int tanada_kv_check(tanada_kv *database, void **json, size_t *json_len);
int tanada_kv_statistics(tanada_kv *database, void **json, size_t *json_len);
int tanada_kv_settings(tanada_kv *database, void **json, size_t *json_len);
int tanada_kv_store_settings(tanada_kv_store *store, void **json, size_t *json_len);

#ifdef __cplusplus
}
#endif

#endif
