// What cudaGL.h needs of OpenGL, so that the comparison needs no OpenGL headers.
typedef unsigned int GLuint;
typedef unsigned int GLenum;
