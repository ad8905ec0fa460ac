/* consumer.c - a plain C11 program that runs a bundle: y = a + b over 8 floats. */
#include <dmx/dmx.h>
#include <stdio.h>

int main(int argc, char **argv) {
  dmx_error error = DMX_ERROR_INIT;
  dmx_bundle *bundle = NULL;
  dmx_session *session = NULL;
  float a[8], b[8], y[8];
  int64_t dims[1] = {8};
  dmx_tensor_view views[3] = {{DMX_DTYPE_F32, 1, dims, a}, {DMX_DTYPE_F32, 1, dims, b}, {DMX_DTYPE_F32, 1, dims, y}};
  if (argc != 2)
    return 2;
  for (int i = 0; i < 8; ++i) {
    a[i] = (float)i;
    b[i] = 0.5f;
  }
  if (dmx_bundle_open(argv[1], &bundle, &error) || dmx_bundle_verify(bundle, &error) ||
      dmx_session_create(bundle, NULL, NULL, &session, &error) ||
      dmx_session_bind(session, DMX_INPUT, 0, &views[0], &error) ||
      dmx_session_bind(session, DMX_INPUT, 1, &views[1], &error) ||
      dmx_session_bind(session, DMX_OUTPUT, 0, &views[2], &error) || dmx_session_run(session, &error)) {
    fprintf(stderr, "%s: %s\n", dmx_status_name(error.status), error.message);
    return 1;
  }
  for (int i = 0; i < 8; ++i)
    printf("%g%c", (double)y[i], i < 7 ? ' ' : '\n');
  dmx_session_destroy(session);
  dmx_bundle_close(bundle);
  return 0;
}
