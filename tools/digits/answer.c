/* answer.c - the digit classifier from C: prints the answer to each image, one a line.
 *
 *   dmxc tools/digits/digits.onnx -o digits.bundle --dim batch=360
 *   gcc -std=c11 tools/digits/answer.c -o answer $(pkg-config --cflags --libs dmxrt)
 *   ./answer digits.bundle tools/digits/images.npy
 */
#include <dmx/dmx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads `bytes` of data from a .npy file (version 1: magic, version, length of the header, header, data). */
static int read_npy(const char *path, void *data, size_t bytes) {
  unsigned char start[10];
  FILE *file = fopen(path, "rb");
  int good = file && fread(start, 1, sizeof start, file) == sizeof start && memcmp(start, "\x93NUMPY\x01", 7) == 0 &&
             fseek(file, start[8] | start[9] << 8, SEEK_CUR) == 0 && fread(data, 1, bytes, file) == bytes;
  if (!good)
    fprintf(stderr, "%s: not a .npy file with %zu bytes of data\n", path, bytes);
  if (file)
    fclose(file);
  return good;
}

/* Memory for an input or output with fixed dims, bound to the session. */
static float *bind_tensor(const dmx_bundle *bundle, dmx_session *session, dmx_io io, int64_t dims[8],
                          dmx_error *error) {
  dmx_tensor_info info = {.struct_size = sizeof info};
  if (dmx_bundle_tensor_info(bundle, NULL, io, 0, &info, error))
    return NULL;
  for (uint32_t i = 0; i < info.rank && i < 8; ++i)
    dims[i] = info.dims[i].max;
  dmx_tensor_view view = {info.dtype, info.rank, dims, malloc((size_t)dmx_tensor_bytes(info.dtype, info.rank, dims))};
  if (dmx_session_bind(session, io, 0, &view, error)) {
    free(view.data);
    return NULL;
  }
  return view.data;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: answer BUNDLE IMAGES.npy\n");
    return 2;
  }
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = NULL;
  dmx_session *session = NULL;
  int64_t in[8] = {0}, out[8] = {0}; /* images: [n, 1, 8, 8]; probabilities: [n, 10] */
  float *images = NULL, *probabilities = NULL;
  int good = dmx_bundle_open(argv[1], &bundle, &error) == DMX_OK &&
             dmx_session_create(bundle, NULL, NULL, &session, &error) == DMX_OK &&
             (images = bind_tensor(bundle, session, DMX_INPUT, in, &error)) &&
             (probabilities = bind_tensor(bundle, session, DMX_OUTPUT, out, &error));
  if (good && !read_npy(argv[2], images, (size_t)(in[0] * in[1] * in[2] * in[3]) * sizeof(float)))
    return 1;
  if (!good || dmx_session_run(session, &error)) {
    fprintf(stderr, "%s: %s\n", dmx_status_name(error.status), error.message);
    return 1;
  }
  for (int64_t i = 0; i < out[0]; ++i) {
    int best = 0;
    for (int digit = 1; digit < out[1]; ++digit)
      if (probabilities[i * out[1] + digit] > probabilities[i * out[1] + best])
        best = digit;
    printf("%d\n", best);
  }
  dmx_session_destroy(session);
  dmx_bundle_close(bundle);
  free(images);
  free(probabilities);
  return 0;
}
