/* digits.c: the digit in each image of 8 x 8 floats on stdin, one run an image.
 *   tail -c +129 tools/digits/images.npy | ./digits digits.bundle
 */
#include <dmx/dmx.h>
#include <stdio.h>

static int fail(const dmx_error *error) { /* every call leaves a sentence in it */
  fprintf(stderr, "digits: %s: %s\n", dmx_status_name(error->status), error->message);
  return 1;
}

int main(int argc, char **argv) {
  float image[8 * 8], scores[10];
  int64_t in[] = {1, 1, 8, 8}, out[] = {1, 10};
  dmx_tensor_view x = {DMX_DTYPE_F32, 4, in, image}, y = {DMX_DTYPE_F32, 2, out, scores};
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = NULL;
  dmx_session *session = NULL;
  if (dmx_bundle_open(argc > 1 ? argv[1] : "digits.bundle", &bundle, &error) ||
      dmx_session_create(bundle, NULL, NULL, &session, &error) ||
      dmx_session_bind(session, DMX_INPUT, 0, &x, &error) || /* the memory stays ours */
      dmx_session_bind(session, DMX_OUTPUT, 0, &y, &error))
    return fail(&error);
  while (fread(image, sizeof image, 1, stdin) == 1) {
    if (dmx_session_run(session, &error))
      return fail(&error);
    int best = 0;
    for (int i = 1; i < 10; ++i)
      if (scores[i] > scores[best])
        best = i;
    printf("%d\n", best);
  }
  dmx_session_destroy(session);
  dmx_bundle_close(bundle);
  return 0;
}
