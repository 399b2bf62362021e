// Constants and structure layouts of the Linux system calls in this directory, for x86-64 and arm64. Both architectures are
// little-endian, have 64-bit pointers, and use the generic numbers of asm-generic for everything in this file except `epoll_event`.

/** Address families, socket types and flags: socket(2), accept4(2). */
export const AF_INET = 2;
export const AF_INET6 = 10;
export const SOCK_STREAM = 1;
export const SOCK_NONBLOCK = 0o4000;
export const SOCK_CLOEXEC = 0o2000000;

/** Socket options: socket(7), tcp(7), ipv6(7). */
export const SOL_SOCKET = 1;
export const SO_ERROR = 4;
export const SO_LINGER = 13;
export const SO_REUSEADDR = 2;
export const SO_REUSEPORT = 15;
export const IPPROTO_TCP = 6;
export const TCP_NODELAY = 1;
export const TCP_NOTSENT_LOWAT = 25;
export const IPPROTO_IPV6 = 41;
export const IPV6_V6ONLY = 26;

/** Flags of send(2) and shutdown(2). */
export const MSG_NOSIGNAL = 0x4000;
export const SHUT_WR = 1;

/** Requests of ioctl(2): tcp(7). */
export const SIOCOUTQ = 0x5411;

/** Events and operations of epoll_ctl(2). */
export const EPOLLIN = 0x001;
export const EPOLLPRI = 0x002;
export const EPOLLOUT = 0x004;
export const EPOLLERR = 0x008;
export const EPOLLHUP = 0x010;
export const EPOLLRDHUP = 0x2000;
export const EPOLLET = 0x80000000;
export const EPOLL_CLOEXEC = 0o2000000;
export const EPOLL_CTL_ADD = 1;
export const EPOLL_CTL_DEL = 2;
export const EPOLL_CTL_MOD = 3;

/** `struct sockaddr_in`: family (2 bytes), port (2, big-endian), address (4). `struct sockaddr_in6`: flow label (4), address (16), scope (4). */
export const SOCKADDR_IN_BYTES = 16;
export const SOCKADDR_IN6_BYTES = 28;

/** `struct iovec`: base (8 bytes), length (8). */
export const IOVEC_BYTES = 16;

/** `struct msghdr`: name (8 bytes), name length (4, padded to 8), iovec (8), iovec count (8), control (8), control length (8), flags (4). */
export const MSGHDR_BYTES = 56;
export const MSGHDR_IOVEC_OFFSET = 16;
export const MSGHDR_IOVEC_COUNT_OFFSET = 24;

/** `struct epoll_event`: events (4 bytes) and data (8). The structure is packed on x86-64 only, so the data moves. */
export interface EpollEventLayout {
  readonly bytes: number;
  readonly dataOffset: number;
}

/** Returns the layout of `struct epoll_event`, or undefined if the architecture is not supported. */
export function epollEventLayoutFor(architecture: string): EpollEventLayout | undefined {
  if (architecture === 'x64') return { bytes: 12, dataOffset: 4 };
  if (architecture === 'arm64') return { bytes: 16, dataOffset: 8 };
  return undefined;
}

// Datagrams: recvmmsg(2), sendmmsg(2), socket(7).

export const SOCK_DGRAM = 2;
export const SO_RCVBUF = 8;
/** 0 lets the kernel choose the sizes of the buffers again after `SO_RCVBUF`. Linux 5.14 or later. */
export const SO_BUF_LOCK = 72;
/** Reads the memory use of a socket as an array of u32: `SK_MEMINFO_…` of linux/sock_diag.h. Entry 0 is received data, 1 its limit, 5 data to send, 8 dropped datagrams. */
export const SO_MEMINFO = 55;
export const SK_MEMINFO_BYTES = 36;
export const SK_MEMINFO_RECEIVED_WORD = 0;
export const SK_MEMINFO_RECEIVE_LIMIT_WORD = 1;
export const SK_MEMINFO_TO_SEND_WORD = 5;
export const SK_MEMINFO_DROPS_WORD = 8;

/** Splits the bytes of one send into datagrams of the same length, see udp(7). */
export const SOL_UDP = 17;
export const UDP_SEGMENT = 103;

/** Offsets in `struct msghdr`. */
export const MSGHDR_NAME_LENGTH_OFFSET = 8;
export const MSGHDR_CONTROL_OFFSET = 32;
export const MSGHDR_CONTROL_LENGTH_OFFSET = 40;
/** `struct cmsghdr` with a u16: length without padding (8 bytes), level (4), type (4), data (2, padded to 8). */
export const CMSG_U16_LENGTH = 18;
export const CMSG_U16_BYTES = 24;
export const CMSG_LEVEL_OFFSET = 8;
export const CMSG_TYPE_OFFSET = 12;
export const CMSG_DATA_OFFSET = 16;
/** `struct mmsghdr`: a `struct msghdr`, length of the datagram (4 bytes), padding (4). */
export const MMSGHDR_BYTES = 64;
export const MMSGHDR_LENGTH_OFFSET = 56;
