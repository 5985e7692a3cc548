/* Uses the engine as a program in C does; exits with 0 if everything is as it should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tanada_kv.h"

#define CHECK(wanted, call)                                                                                         \
    do {                                                                                                            \
        int code = (call);                                                                                          \
        if (code != (wanted)) {                                                                                     \
            fprintf(stderr, "line %d: %s gives %d (%s)\n", __LINE__, #call, code, tanada_kv_error());               \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)
#define OK(call) CHECK(TANADA_KV_OK, call)
#define TRUE(what)                                                                                                  \
    do {                                                                                                            \
        if (!(what)) {                                                                                              \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #what);                                              \
            exit(1);                                                                                                \
        }                                                                                                           \
    } while (0)

static void put(tanada_kv_store *store, const char *key, const char *value) {
    OK(tanada_kv_put(store, key, strlen(key), value, strlen(value), 0));
}

static int has(tanada_kv_store *store, const char *key) {
    void *value;
    size_t value_len;
    int code = tanada_kv_get(store, key, strlen(key), &value, &value_len);
    if (code == TANADA_KV_OK) tanada_kv_free(value, value_len);
    TRUE(code == TANADA_KV_OK || code == TANADA_KV_NOT_FOUND);
    return code == TANADA_KV_OK;
}

/* Batches, ranges, snapshots, settings and policies. */
static void more(const char *volume) {
    tanada_kv *database;
    tanada_kv_store *store, *other;
    const char *settings = "{\"memory_bytes\": 8388608, \"durability\": {\"within\": 10}}";
    CHECK(TANADA_KV_INVALID, tanada_kv_open(volume, "more", 0xf0 | TANADA_KV_CREATE, &database));
    TRUE(strstr(tanada_kv_error(), "no flags of databases") != NULL);
    CHECK(TANADA_KV_INVALID, tanada_kv_open(volume, "more", TANADA_KV_CREATE, NULL));
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_open(volume, "more", 0, &database));
    CHECK(TANADA_KV_INVALID, tanada_kv_open_with(volume, "more", TANADA_KV_CREATE, "{\"memory\": 1}", &database));
    TRUE(strstr(tanada_kv_error(), "settings of a database") != NULL);
    CHECK(TANADA_KV_INVALID, tanada_kv_open_with(volume, "more", TANADA_KV_CREATE, "{\"memory_bytes\": 1}", &database));
    OK(tanada_kv_open_with(volume, "more", TANADA_KV_CREATE, settings, &database));
    CHECK(TANADA_KV_INVALID, tanada_kv_store_open(database, "a", TANADA_KV_READ | TANADA_KV_CREATE, &store));
    CHECK(TANADA_KV_INVALID, tanada_kv_store_open_with(database, "a", TANADA_KV_CREATE, "{\"page_bytes\": 1}", &store));
    OK(tanada_kv_store_open_with(database, "a", TANADA_KV_CREATE, "{\"compression\": \"lz4\"}", &store));
    OK(tanada_kv_store_open_with(database, "b", TANADA_KV_CREATE, NULL, &other));

    tanada_kv_batch *batch;
    put(store, "0", "old");
    OK(tanada_kv_batch_new(&batch));
    OK(tanada_kv_batch_put(batch, store, "1", 1, "one", 3));
    OK(tanada_kv_batch_put(batch, store, "2", 1, "two", 3));
    OK(tanada_kv_batch_put(batch, other, "3", 1, "three", 5));
    OK(tanada_kv_batch_delete(batch, store, "0", 1));
    OK(tanada_kv_batch_delete_range(batch, store, "2", 1, "3", 1));
    TRUE(has(store, "0") && !has(store, "1"));
    OK(tanada_kv_write(database, batch, TANADA_KV_SYNC));
    TRUE(!has(store, "0") && has(store, "1") && !has(store, "2") && has(other, "3"));
    OK(tanada_kv_batch_new(&batch));
    OK(tanada_kv_batch_put(batch, store, "9", 1, "never", 5));
    tanada_kv_batch_free(batch);
    TRUE(!has(store, "9"));

    OK(tanada_kv_put(store, "4", 1, "four", 4, TANADA_KV_WITHIN_MS(5)));
    CHECK(TANADA_KV_INVALID, tanada_kv_put(store, "4", 1, "four", 4, TANADA_KV_WITHIN_MS(2000)));
    tanada_kv_snapshot *snapshot;
    tanada_kv_cursor *cursor;
    const void *key, *shown;
    void *value;
    size_t key_len, shown_len, value_len;
    OK(tanada_kv_snapshot_take(database, &snapshot));
    OK(tanada_kv_delete_range(store, "1", 1, "2", 1, 0));
    TRUE(!has(store, "1") && has(store, "4"));
    OK(tanada_kv_delete_range(store, "1", 1, NULL, 0, TANADA_KV_SYNC));
    TRUE(!has(store, "4"));
    OK(tanada_kv_get_at(store, snapshot, "4", 1, &value, &value_len));
    TRUE(value_len == 4 && memcmp(value, "four", 4) == 0);
    tanada_kv_free(value, value_len);
    OK(tanada_kv_cursor_open_at(store, snapshot, NULL, 0, &cursor));
    OK(tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(key_len == 1 && memcmp(key, "1", 1) == 0);
    tanada_kv_cursor_free(cursor);
    tanada_kv_snapshot_free(snapshot);

    put(store, "5", "five");
    CHECK(TANADA_KV_INVALID, tanada_kv_set_policy(store, "\"no_such_policy\""));
    CHECK(TANADA_KV_INVALID, tanada_kv_set_policy(store, NULL));
    OK(tanada_kv_set_policy(store, "\"capacity_only\""));
    OK(tanada_kv_compact(store));
    TRUE(has(store, "5"));
    tanada_kv_store_free(store);
    tanada_kv_store_free(other);
    OK(tanada_kv_close(database));
    OK(tanada_kv_open_with(volume, "more", 0, "{\"memory_bytes\": 4194304}", &database));
    OK(tanada_kv_store_open(database, "a", 0, &store));
    TRUE(has(store, "5") && !has(store, "4"));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
}

/* Whether JSON has these characters; gives it back. */
static int says(void *json, size_t json_len, const char *wanted) {
    char *copy = malloc(json_len + 1);
    TRUE(copy != NULL);
    memcpy(copy, json, json_len);
    copy[json_len] = 0;
    int found = strstr(copy, wanted) != NULL;
    if (!found) fprintf(stderr, "%s\n", copy);
    free(copy);
    tanada_kv_free(json, json_len);
    return found;
}

/* Loads, copies, checks and statistics. */
static void whole(const char *volume) {
    tanada_kv *database, *other;
    tanada_kv_store *store;
    tanada_kv_load *load;
    char key[8], value[1000];
    void *json;
    size_t json_len;
    memset(value, 7, sizeof value);
    OK(tanada_kv_open(volume, "whole", TANADA_KV_CREATE, &database));
    OK(tanada_kv_store_open(database, "lines", TANADA_KV_CREATE, &store));
    put(store, "000", "before");
    OK(tanada_kv_load_begin(store, &load));
    for (int no = 0; no < 100; no++) {
        snprintf(key, sizeof key, "%03d", no);
        OK(tanada_kv_load_put(load, key, 3, value, sizeof value));
    }
    CHECK(TANADA_KV_INVALID, tanada_kv_load_put(load, "050", 3, value, sizeof value));
    TRUE(strstr(tanada_kv_error(), "not larger") != NULL);
    CHECK(TANADA_KV_INVALID, tanada_kv_load_put(NULL, "x", 1, "y", 1));
    put(store, "050", "meanwhile");
    TRUE(!has(store, "099"));
    OK(tanada_kv_load_finish(load));
    TRUE(has(store, "000") && has(store, "099"));
    void *found;
    size_t found_len;
    OK(tanada_kv_get(store, "000", 3, &found, &found_len));
    TRUE(found_len == sizeof value && memcmp(found, value, found_len) == 0);
    tanada_kv_free(found, found_len);
    OK(tanada_kv_get(store, "050", 3, &found, &found_len));
    TRUE(found_len == 9 && memcmp(found, "meanwhile", 9) == 0);
    tanada_kv_free(found, found_len);
    OK(tanada_kv_load_begin(store, &load));
    OK(tanada_kv_load_put(load, "200", 3, "never", 5));
    tanada_kv_load_free(load);
    tanada_kv_load_free(NULL);
    TRUE(!has(store, "200"));
    CHECK(TANADA_KV_INVALID, tanada_kv_load_finish(NULL));

    OK(tanada_kv_checkpoint(database, "copy"));
    CHECK(TANADA_KV_EXISTS, tanada_kv_checkpoint(database, "copy"));
    CHECK(TANADA_KV_INVALID, tanada_kv_checkpoint(database, "a/b"));
    OK(tanada_kv_check(database, &json, &json_len));
    TRUE(says(json, json_len, "\"values\":100,"));
    OK(tanada_kv_check(database, &json, &json_len));
    TRUE(says(json, json_len, "\"findings\":[]"));
    CHECK(TANADA_KV_INVALID, tanada_kv_check(database, NULL, &json_len));
    OK(tanada_kv_statistics(database, &json, &json_len));
    TRUE(says(json, json_len, "\"bytes_loaded\":100300,"));
    CHECK(TANADA_KV_INVALID, tanada_kv_statistics(NULL, &json, &json_len));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
    OK(tanada_kv_open(volume, "copy", 0, &other));
    OK(tanada_kv_store_open(other, "lines", 0, &store));
    TRUE(has(store, "000") && has(store, "050") && has(store, "099") && !has(store, "200"));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(other));
}

/* A number in what statistics say. */
static unsigned long long counted(tanada_kv *database, const char *name) {
    void *json;
    size_t json_len;
    char text[16384] = {0};
    OK(tanada_kv_statistics(database, &json, &json_len));
    TRUE(json_len < sizeof text);
    memcpy(text, json, json_len);
    tanada_kv_free(json, json_len);
    const char *found = strstr(text, name);
    TRUE(found != NULL);
    return strtoull(found + strlen(name), NULL, 10);
}

/* How cursors are opened, and how writes are made. */
static void told(const char *volume) {
    tanada_kv *database;
    tanada_kv_store *store;
    tanada_kv_cursor *cursor, *of_transaction;
    tanada_kv_transaction *transaction;
    tanada_kv_snapshot *snapshot;
    tanada_kv_batch *batch;
    const void *key, *shown;
    size_t key_len, shown_len;
    OK(tanada_kv_open(volume, "told", TANADA_KV_CREATE, &database));
    OK(tanada_kv_store_open(database, "a", TANADA_KV_CREATE, &store));
    put(store, "1", "one");
    put(store, "2", "two");
    OK(tanada_kv_snapshot_take(database, &snapshot));
    put(store, "3", "three");
    CHECK(TANADA_KV_INVALID, tanada_kv_cursor_open_with(store, NULL, NULL, 0, 2, 0, &cursor));
    OK(tanada_kv_cursor_open_with(store, snapshot, NULL, 0, TANADA_KV_KEYS_ONLY, 2, &cursor));
    tanada_kv_snapshot_free(snapshot);
    OK(tanada_kv_cursor_seek_to_end(cursor));
    OK(tanada_kv_cursor_previous(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(memcmp(key, "2", 1) == 0);
    OK(tanada_kv_cursor_seek_to_begin(cursor));
    OK(tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(key_len == 1 && memcmp(key, "1", 1) == 0 && shown_len == 0);
    OK(tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    OK(tanada_kv_cursor_refresh(cursor));
    OK(tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(memcmp(key, "3", 1) == 0 && shown_len == 0);
    OK(tanada_kv_cursor_seek_to_begin(cursor));
    OK(tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(memcmp(key, "1", 1) == 0);
    tanada_kv_cursor_free(cursor);
    CHECK(TANADA_KV_INVALID, tanada_kv_cursor_refresh(NULL));
    OK(tanada_kv_cursor_open_with(store, NULL, "3", 1, 0, 1, &cursor));
    OK(tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(shown_len == 5 && memcmp(shown, "three", 5) == 0);
    tanada_kv_cursor_free(cursor);

    OK(tanada_kv_begin(database, 1, &transaction));
    OK(tanada_kv_transaction_put(transaction, store, "0", 1, "own", 3));
    OK(tanada_kv_transaction_delete_range(transaction, store, "1", 1, "3", 1));
    OK(tanada_kv_transaction_cursor_open(transaction, store, NULL, 0, 0, &of_transaction));
    OK(tanada_kv_cursor_next(of_transaction, &key, &key_len, &shown, &shown_len));
    TRUE(memcmp(key, "0", 1) == 0 && shown_len == 3);
    OK(tanada_kv_cursor_next(of_transaction, &key, &key_len, &shown, &shown_len));
    TRUE(memcmp(key, "3", 1) == 0);
    OK(tanada_kv_commit(transaction, 0));
    tanada_kv_cursor_free(of_transaction);
    TRUE(has(store, "0") && !has(store, "1") && !has(store, "2") && has(store, "3"));

    char *value = calloc(1, 1 << 20);
    TRUE(value != NULL);
    unsigned long long before = counted(database, "{\"log\":");
    OK(tanada_kv_put(store, "long", 4, value, 1 << 20, TANADA_KV_ZSTD | TANADA_KV_SYNC));
    unsigned long long squeezed = counted(database, "{\"log\":") - before;
    OK(tanada_kv_put(store, "long", 4, value, 1 << 20, TANADA_KV_UNCOMPRESSED | TANADA_KV_SYNC));
    TRUE(squeezed < 1 << 18 && counted(database, "{\"log\":") - before - squeezed >= 1 << 20);
    free(value);
    CHECK(TANADA_KV_INVALID, tanada_kv_put(store, "x", 1, "y", 1, TANADA_KV_ZSTD | TANADA_KV_LZ4));
    CHECK(TANADA_KV_INVALID, tanada_kv_put(store, "x", 1, "y", 1, 1 << 10));

    OK(tanada_kv_put_expiring(store, "soon", 4, "gone", 4, 1, 0));
    OK(tanada_kv_put_expiring(store, "late", 4, "kept", 4, 1000, TANADA_KV_SYNC));
    OK(tanada_kv_put_expiring(store, "ever", 4, "kept", 4, 0, 0));
    OK(tanada_kv_batch_new(&batch));
    OK(tanada_kv_batch_put(batch, store, "too", 3, "gone", 4));
    OK(tanada_kv_write_expiring(database, batch, 1, TANADA_KV_SYNC));
    sleep(2);
    TRUE(!has(store, "soon") && !has(store, "too") && has(store, "late") && has(store, "ever"));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
}

/* What is not named of the settings of a database that is there stays. */
static void named(const char *volume) {
    tanada_kv *database;
    tanada_kv_store *store;
    void *json;
    size_t json_len;
    const char *made = "{\"fast_class_bytes\": 33554432}", *more = "{\"memory_bytes\": 8388608}";
    OK(tanada_kv_open_with(volume, "named", TANADA_KV_CREATE, made, &database));
    OK(tanada_kv_store_open_with(database, "a", TANADA_KV_CREATE, "{\"time_to_live_s\": 60}", &store));
    OK(tanada_kv_set_policy(store, "\"staging_only\""));
    OK(tanada_kv_store_settings(store, &json, &json_len));
    TRUE(says(json, json_len, "\"time_to_live_s\":60,\"policy\":\"staging_only\""));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
    OK(tanada_kv_open_with(volume, "named", TANADA_KV_CREATE, more, &database));
    OK(tanada_kv_settings(database, &json, &json_len));
    TRUE(says(json, json_len, "\"fast_class_bytes\":33554432"));
    OK(tanada_kv_settings(database, &json, &json_len));
    TRUE(says(json, json_len, "\"memory_bytes\":8388608"));
    OK(tanada_kv_close(database));
    CHECK(TANADA_KV_INVALID, tanada_kv_open_with(volume, "named", 0, "{\"memory_bytes\": null}", &database));
    OK(tanada_kv_open_with(volume, "named", 0, "{\"fast_class_bytes\": null}", &database));
    OK(tanada_kv_close(database));
    OK(tanada_kv_open(volume, "named", TANADA_KV_READ, &database));
    OK(tanada_kv_settings(database, &json, &json_len));
    TRUE(says(json, json_len, "\"fast_class_bytes\":null"));
    OK(tanada_kv_close(database));
}

/* Settings that change while a database is in use, and what is refused. */
static void changed(const char *volume) {
    tanada_kv *database;
    tanada_kv_store *store;
    void *json;
    size_t json_len;
    OK(tanada_kv_open(volume, "changed", TANADA_KV_CREATE, &database));
    OK(tanada_kv_store_open_with(database, "a", TANADA_KV_CREATE, "{\"time_to_live_s\": 60}", &store));
    OK(tanada_kv_store_set_settings(store, "{\"compression\": \"lz4\", \"policy\": \"capacity_only\"}"));
    CHECK(TANADA_KV_INVALID, tanada_kv_store_set_settings(store, "{\"mirrors\": false, \"page_bytes\": 1}"));
    TRUE(strstr(tanada_kv_error(), "page_bytes") != NULL);
    CHECK(TANADA_KV_INVALID, tanada_kv_store_set_settings(store, "{\"no_such\": 1}"));
    CHECK(TANADA_KV_INVALID, tanada_kv_store_set_settings(store, NULL));
    CHECK(TANADA_KV_INVALID, tanada_kv_store_set_settings(NULL, "{}"));
    OK(tanada_kv_set_settings(database, "{\"durability\": \"sync\", \"waiting_tables\": 7}"));
    CHECK(TANADA_KV_INVALID, tanada_kv_set_settings(database, "{\"memory_bytes\": 8388608}"));
    TRUE(strstr(tanada_kv_error(), "memory_bytes") != NULL);
    CHECK(TANADA_KV_INVALID, tanada_kv_set_settings(database, NULL));
    OK(tanada_kv_set_fast_class_bytes(database, 33554432));
    CHECK(TANADA_KV_INVALID, tanada_kv_set_fast_class_bytes(database, 1));
    CHECK(TANADA_KV_INVALID, tanada_kv_set_fast_class_bytes(NULL, 0));
    OK(tanada_kv_settings(database, &json, &json_len));
    TRUE(says(json, json_len, "\"durability\":\"sync\",\"fast_class_bytes\":33554432"));
    OK(tanada_kv_set_fast_class_bytes(database, 0));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
    OK(tanada_kv_open(volume, "changed", TANADA_KV_READ, &database));
    OK(tanada_kv_settings(database, &json, &json_len));
    TRUE(says(json, json_len, "\"durability\":\"sync\",\"fast_class_bytes\":null"));
    OK(tanada_kv_store_open(database, "a", 0, &store));
    OK(tanada_kv_store_settings(store, &json, &json_len));
    TRUE(says(json, json_len, "\"compression\":\"lz4\",\"time_to_live_s\":60,\"policy\":\"capacity_only\""));
    CHECK(TANADA_KV_READ_ONLY, tanada_kv_store_set_settings(store, "{\"mirrors\": false}"));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
}

/* Databases of one volume that are open at once, and what is listed, dropped and destroyed. */
static void several(const char *volume) {
    tanada_kv *first, *second, *third;
    tanada_kv_store *of_first, *of_second, *store;
    void *json;
    size_t json_len;
    char other_name[4096];
    TRUE(snprintf(other_name, sizeof other_name, "%s/.", volume) < (int)sizeof other_name);
    OK(tanada_kv_open(volume, "first", TANADA_KV_CREATE, &first));
    OK(tanada_kv_open(other_name, "second", TANADA_KV_CREATE, &second));
    OK(tanada_kv_store_open(first, "a", TANADA_KV_CREATE, &of_first));
    OK(tanada_kv_store_open(second, "a", TANADA_KV_CREATE, &of_second));
    put(of_first, "1", "one");
    put(of_second, "2", "two");
    TRUE(has(of_first, "1") && !has(of_first, "2") && has(of_second, "2") && !has(of_second, "1"));
    CHECK(TANADA_KV_LOCKED, tanada_kv_open(volume, "first", 0, &third));
    CHECK(TANADA_KV_LOCKED, tanada_kv_destroy(volume, "first"));
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_open(volume, "nowhere", 0, &third));

    /* The volume stays open as long as one of them is. */
    tanada_kv_store_free(of_first);
    OK(tanada_kv_close(first));
    put(of_second, "3", "three");
    OK(tanada_kv_sync(second));
    OK(tanada_kv_open(volume, "first", TANADA_KV_READ, &first));
    OK(tanada_kv_open(volume, "first", TANADA_KV_READ, &third));
    OK(tanada_kv_store_open(third, "a", 0, &store));
    TRUE(has(store, "1"));
    CHECK(TANADA_KV_READ_ONLY, tanada_kv_put(store, "x", 1, "y", 1, 0));
    CHECK(TANADA_KV_READ_ONLY, tanada_kv_store_drop(third, "a"));
    CHECK(TANADA_KV_READ_ONLY, tanada_kv_drain_class(third, "capacity"));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(third));

    OK(tanada_kv_store_open(second, "b", TANADA_KV_CREATE, &store));
    put(store, "1", "one");
    OK(tanada_kv_stores(second, &json, &json_len));
    TRUE(says(json, json_len, "[\"a\",\"b\"]"));
    OK(tanada_kv_store_drop(second, "b"));
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_store_drop(second, "b"));
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_put(store, "2", 1, "two", 3, 0));
    tanada_kv_store_free(store);
    OK(tanada_kv_stores(second, &json, &json_len));
    TRUE(says(json, json_len, "[\"a\"]"));
    CHECK(TANADA_KV_INVALID, tanada_kv_stores(second, NULL, &json_len));

    OK(tanada_kv_databases(volume, &json, &json_len));
    TRUE(says(json, json_len, "\"first\",\"more\",\"named\",\"second\",\"shop\""));
    tanada_kv_store_free(of_second);
    OK(tanada_kv_close(second));
    /* What reads alone keeps nobody from reading, and everybody from writing. */
    OK(tanada_kv_close(first));
    OK(tanada_kv_open(volume, "first", TANADA_KV_READ, &first));
    CHECK(TANADA_KV_LOCKED, tanada_kv_open(volume, "second", 0, &second));
    OK(tanada_kv_open(volume, "second", TANADA_KV_READ, &second));
    OK(tanada_kv_store_open(second, "a", 0, &of_second));
    TRUE(has(of_second, "2") && has(of_second, "3"));
    tanada_kv_store_free(of_second);
    OK(tanada_kv_close(second));
    OK(tanada_kv_close(first));

    OK(tanada_kv_destroy(volume, "second"));
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_destroy(volume, "second"));
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_open(volume, "second", 0, &second));
    OK(tanada_kv_databases(volume, &json, &json_len));
    TRUE(says(json, json_len, "\"first\",\"more\",\"named\",\"shop\""));
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_databases("/no/such/volume", &json, &json_len));
}

/* How many bytes a class has by what statistics say: those of its segments of the log, which is where a small database is. */
static unsigned long long log_bytes(tanada_kv *database, const char *class_name) {
    char name[256];
    snprintf(name, sizeof name, "\"name\":\"%s\",\"segment_bytes\":", class_name);
    return counted(database, name);
}

/* A class is emptied while a database is in use, and takes data again. */
static void drain(const char *volume) {
    tanada_kv *database;
    tanada_kv_store *store;
    OK(tanada_kv_open(volume, "shop", TANADA_KV_CREATE, &database));
    OK(tanada_kv_store_open(database, "a", TANADA_KV_CREATE, &store));
    put(store, "1", "one");
    OK(tanada_kv_sync(database));
    TRUE(log_bytes(database, "fast") > 0 && log_bytes(database, "slow") == 0);
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_drain_class(database, "no such class"));
    OK(tanada_kv_drain_class(database, "fast"));
    TRUE(has(store, "1"));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
    OK(tanada_kv_open(volume, "shop", 0, &database));
    OK(tanada_kv_store_open(database, "a", 0, &store));
    put(store, "2", "two");
    OK(tanada_kv_sync(database));
    TRUE(has(store, "1") && log_bytes(database, "fast") == 0 && log_bytes(database, "slow") > 0);
    /* There is nowhere else to go. */
    CHECK(TANADA_KV_NO_SPACE, tanada_kv_drain_class(database, "slow"));
    OK(tanada_kv_fill_class(database, "slow"));
    OK(tanada_kv_fill_class(database, "fast"));
    OK(tanada_kv_drain_class(database, "slow"));
    TRUE(has(store, "1") && has(store, "2"));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
}

/* Writes, and stops without closing anything. */
static void stop(const char *volume) {
    tanada_kv *database;
    tanada_kv_store *store;
    OK(tanada_kv_open(volume, "stopped", TANADA_KV_CREATE, &database));
    OK(tanada_kv_store_open(database, "a", TANADA_KV_CREATE, &store));
    OK(tanada_kv_put(store, "1", 1, "one", 3, TANADA_KV_SYNC));
    _Exit(0);
}

struct seen {
    int calls;
    uint64_t replayed_bytes, total_bytes;
};

static void see(void *context, uint64_t replayed_bytes, uint64_t total_bytes) {
    struct seen *seen = context;
    TRUE(replayed_bytes >= seen->replayed_bytes && replayed_bytes <= total_bytes);
    *seen = (struct seen){seen->calls + 1, replayed_bytes, total_bytes};
}

/* An opening after a stop tells how far it is. */
static void recover(const char *volume) {
    tanada_kv *database;
    tanada_kv_store *store;
    struct seen seen = {0, 0, 0};
    OK(tanada_kv_open_telling(volume, "stopped", 0, NULL, see, &seen, &database));
    TRUE(seen.calls > 0 && seen.replayed_bytes > 0);
    OK(tanada_kv_store_open(database, "a", 0, &store));
    TRUE(has(store, "1"));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
    OK(tanada_kv_open_telling(volume, "stopped", TANADA_KV_READ, NULL, NULL, NULL, &database));
    OK(tanada_kv_close(database));
}

int main(int count, char **arguments) {
    if (count == 3) {
        if (strcmp(arguments[2], "drain") == 0) drain(arguments[1]);
        else if (strcmp(arguments[2], "stop") == 0) stop(arguments[1]);
        else recover(arguments[1]);
        return 0;
    }
    tanada_kv *database;
    tanada_kv_store *store;
    TRUE(count == 2);
    const char *volume = arguments[1];
    OK(tanada_kv_create_volume(volume, 512 << 20));
    CHECK(TANADA_KV_EXISTS, tanada_kv_create_volume(volume, 512 << 20));
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_open(volume, "shop", 0, &database));
    TRUE(strstr(tanada_kv_error(), "shop") != NULL);
    CHECK(TANADA_KV_INVALID, tanada_kv_open(NULL, "shop", 0, &database));
    OK(tanada_kv_open(volume, "shop", TANADA_KV_CREATE, &database));
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_store_open(database, "lines", 0, &store));
    OK(tanada_kv_store_open(database, "lines", TANADA_KV_CREATE, &store));

    put(store, "a/1", "rice");
    put(store, "a/2", "tea");
    put(store, "b/1", "");
    void *value;
    size_t value_len;
    OK(tanada_kv_get(store, "a/1", 3, &value, &value_len));
    TRUE(value_len == 4 && memcmp(value, "rice", 4) == 0);
    tanada_kv_free(value, value_len);
    OK(tanada_kv_get(store, "b/1", 3, &value, &value_len));
    TRUE(value_len == 0);
    tanada_kv_free(value, value_len);
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_get(store, "c", 1, &value, &value_len));

    tanada_kv_cursor *cursor;
    const void *key, *shown;
    size_t key_len, shown_len;
    OK(tanada_kv_cursor_open(store, "a/", 2, &cursor));
    OK(tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(key_len == 3 && memcmp(key, "a/1", 3) == 0 && shown_len == 4);
    OK(tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(memcmp(shown, "tea", 3) == 0);
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    OK(tanada_kv_cursor_seek_to_end(cursor));
    OK(tanada_kv_cursor_previous(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(memcmp(key, "a/2", 3) == 0);
    OK(tanada_kv_cursor_seek(cursor, "a/0", 3));
    OK(tanada_kv_cursor_next(cursor, &key, &key_len, &shown, &shown_len));
    TRUE(memcmp(key, "a/1", 3) == 0);
    tanada_kv_cursor_free(cursor);

    tanada_kv_transaction *first, *second;
    OK(tanada_kv_begin(database, 0, &first));
    OK(tanada_kv_begin(database, 0, &second));
    OK(tanada_kv_transaction_put(first, store, "a/1", 3, "salt", 4));
    OK(tanada_kv_transaction_get(first, store, "a/1", 3, &value, &value_len));
    TRUE(memcmp(value, "salt", 4) == 0);
    tanada_kv_free(value, value_len);
    OK(tanada_kv_transaction_delete(second, store, "a/1", 3));
    OK(tanada_kv_commit(first, TANADA_KV_SYNC));
    CHECK(TANADA_KV_CONFLICT, tanada_kv_commit(second, 0));
    OK(tanada_kv_begin(database, 1, &first));
    OK(tanada_kv_transaction_delete(first, store, "a/2", 3));
    tanada_kv_rollback(first);

    OK(tanada_kv_delete_prefix(store, "b/", 2, 0));
    put(store, "c/1", "bread");
    TRUE(has(store, "c/1"));
    OK(tanada_kv_delete(store, "c/1", 3, TANADA_KV_SYNC));
    TRUE(!has(store, "c/1"));
    CHECK(TANADA_KV_INVALID, tanada_kv_delete(NULL, "c/1", 3, 0));
    OK(tanada_kv_sync(database));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));

    OK(tanada_kv_open(volume, "shop", TANADA_KV_READ, &database));
    OK(tanada_kv_store_open(database, "lines", 0, &store));
    OK(tanada_kv_get(store, "a/1", 3, &value, &value_len));
    TRUE(value_len == 4 && memcmp(value, "salt", 4) == 0);
    tanada_kv_free(value, value_len);
    OK(tanada_kv_get(store, "a/2", 3, &value, &value_len));
    tanada_kv_free(value, value_len);
    CHECK(TANADA_KV_NOT_FOUND, tanada_kv_get(store, "b/1", 3, &value, &value_len));
    TRUE(!has(store, "c/1"));
    CHECK(TANADA_KV_READ_ONLY, tanada_kv_put(store, "x", 1, "y", 1, 0));
    CHECK(TANADA_KV_INVALID, tanada_kv_put(store, NULL, 3, "y", 1, 0));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
    more(volume);
    whole(volume);
    told(volume);
    named(volume);
    changed(volume);
    several(volume);
    puts("all is well");
    return 0;
}
