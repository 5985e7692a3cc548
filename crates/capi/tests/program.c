/* Uses the engine as a program in C does; exits with 0 if everything is as it should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int count, char **arguments) {
    tanada_kv *database;
    tanada_kv_store *store;
    TRUE(count == 2);
    const char *volume = arguments[1];
    OK(tanada_kv_create_volume(volume, 256 << 20));
    CHECK(TANADA_KV_EXISTS, tanada_kv_create_volume(volume, 256 << 20));
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
    CHECK(TANADA_KV_READ_ONLY, tanada_kv_put(store, "x", 1, "y", 1, 0));
    CHECK(TANADA_KV_INVALID, tanada_kv_put(store, NULL, 3, "y", 1, 0));
    tanada_kv_store_free(store);
    OK(tanada_kv_close(database));
    puts("all is well");
    return 0;
}
