/* everywhere.h: functions of headers that all units compute by the same code. Sources for a device
 * define EVERYWHERE first, as their compiler wants it (backend/cuda/device/host_device.h). */
#ifndef PRONY_BASE_EVERYWHERE_H
#define PRONY_BASE_EVERYWHERE_H

#ifndef EVERYWHERE
#define EVERYWHERE static inline
#endif

#endif
