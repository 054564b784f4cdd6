// Nothing: see egl.h.
