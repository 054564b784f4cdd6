// What cudaVDPAU.h needs of VDPAU.
typedef unsigned int VdpDevice;
typedef unsigned int VdpVideoSurface;
typedef unsigned int VdpOutputSurface;
typedef void VdpGetProcAddress;
