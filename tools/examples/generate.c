/* generate.c: a language model from C: the best tokens behind those on stdin, ids between spaces, up to eos.
 *   echo 1 5 6 | ./generate llm.bundle
 * The bundle was compiled from a folder with a configuration, so that it says what its tensors are (`generate.` in its
 * metadata). Its caches are states with a length: the session appends the tokens of a run to those before.
 */
#include <dmx/dmx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dmx_error error = DMX_ERROR_INIT;
static dmx_bundle *bundle;
static dmx_session *session;

static void check(dmx_status status) {
  if (status == DMX_OK)
    return;
  fprintf(stderr, "generate: %s: %s\n", dmx_status_name(status), error.message);
  exit(1);
}

static int64_t *integers(int64_t count) {
  int64_t *values = calloc((size_t)count, sizeof *values);
  if (!values) {
    fprintf(stderr, "generate: out of memory\n");
    exit(1);
  }
  return values;
}

static uint32_t find(dmx_io io, const char *name) {
  uint32_t index = 0;
  check(dmx_bundle_find_tensor(bundle, NULL, io, name, &index, &error));
  return index;
}

/* Integers, 1 x count, for the input that the metadata names, if it has one. */
static void bind_integers(const char *key, int64_t count, int64_t *values) {
  const char *name = dmx_bundle_metadata(bundle, key);
  int64_t dims[] = {1, count};
  dmx_tensor_view view = {DMX_DTYPE_I64, 2, dims, values};
  if (name)
    check(dmx_session_bind(session, DMX_INPUT, find(DMX_INPUT, name), &view, &error));
}

/* Computes `count` ids behind `length` others; gives the best token behind them. */
static int64_t step(int64_t *ids, int64_t count, int64_t length, int64_t *ones, int64_t *places) {
  bind_integers("generate.ids", count, ids);
  bind_integers("generate.mask", length + count, ones);
  bind_integers("generate.positions", count, places + length);
  check(dmx_session_run(session, &error));
  dmx_tensor_view logits;
  check(dmx_session_output(session, find(DMX_OUTPUT, dmx_bundle_metadata(bundle, "generate.logits")), &logits, &error));
  int64_t best = 0, size = logits.dims[2];
  const float *last = (const float *)logits.data + (logits.dims[1] - 1) * size;
  for (int64_t i = 1; i < size; ++i)
    if (last[i] > last[best])
      best = i;
  return best;
}

static int is_end(int64_t id) { /* whether it is among the ids of eos */
  const char *text = dmx_bundle_metadata(bundle, "generate.eos");
  for (char *end; text && *text; text = *end ? end + 1 : end)
    if (strtoll(text, &end, 10) == id)
      return 1;
  return 0;
}

int main(int argc, char **argv) {
  check(dmx_bundle_open(argc > 1 ? argv[1] : "llm.bundle", &bundle, &error));
  check(dmx_session_create(bundle, NULL, NULL, &session, &error));
  const char *version = dmx_bundle_metadata(bundle, "generate.version");
  if (!version || strcmp(version, "1")) {
    fprintf(stderr, "generate: the bundle does not say how it is run; compile it from a folder with a configuration\n");
    return 1;
  }
  int64_t count = 0, length = 0, most = 0;
  check(dmx_session_state_length(session, NULL, NULL, &most, &error));
  int64_t *ids = integers(most), *ones = integers(most), *places = integers(most);
  for (int64_t i = 0; i < most; ++i)
    ones[i] = 1, places[i] = i;
  for (long long id; count < most && scanf("%lld", &id) == 1;)
    ids[count++] = id;
  while (count && length + count <= most) {
    int64_t token = step(ids, count, length, ones, places);
    length += count, count = 1, *ids = token;
    if (is_end(token))
      break;
    printf("%lld ", (long long)token);
    fflush(stdout);
  }
  printf("\n");
  dmx_session_destroy(session);
  dmx_bundle_close(bundle);
  return 0;
}
