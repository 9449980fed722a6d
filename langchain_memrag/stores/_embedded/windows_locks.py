"""`LockFileEx`, the file lock of Windows that knows shared holders."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    import ctypes
    import msvcrt
    from ctypes import wintypes

    _FAIL_IMMEDIATELY = 0x1
    _EXCLUSIVE = 0x2
    _LOCK_VIOLATION = 33
    _NOT_LOCKED = 158

    class _Overlapped(ctypes.Structure):
        _fields_ = (
            ("Internal", ctypes.c_void_p),
            ("InternalHigh", ctypes.c_void_p),
            ("Offset", wintypes.DWORD),
            ("OffsetHigh", wintypes.DWORD),
            ("hEvent", wintypes.HANDLE),
        )

    _kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
    _kernel32.LockFileEx.argtypes = (
        wintypes.HANDLE,
        wintypes.DWORD,
        wintypes.DWORD,
        wintypes.DWORD,
        wintypes.DWORD,
        ctypes.POINTER(_Overlapped),
    )
    _kernel32.LockFileEx.restype = wintypes.BOOL
    _kernel32.UnlockFileEx.argtypes = (
        wintypes.HANDLE,
        wintypes.DWORD,
        wintypes.DWORD,
        wintypes.DWORD,
        ctypes.POINTER(_Overlapped),
    )
    _kernel32.UnlockFileEx.restype = wintypes.BOOL

    def take_lock(fd: int, *, exclusive: bool) -> bool:
        """Take, or convert to, a lock; False if another holder is in the way."""
        free_lock(fd)  # Windows has no conversion: a second lock on the same handle would wait for the first
        flags = _FAIL_IMMEDIATELY | (_EXCLUSIVE if exclusive else 0)
        handle = msvcrt.get_osfhandle(fd)
        if _kernel32.LockFileEx(handle, flags, 0, 1, 0, ctypes.byref(_Overlapped())):
            return True
        code = ctypes.get_last_error()
        if code == _LOCK_VIOLATION:
            return False
        raise ctypes.WinError(code)

    def free_lock(fd: int) -> None:
        """Free the lock, if this handle has it."""
        handle = msvcrt.get_osfhandle(fd)
        if not _kernel32.UnlockFileEx(handle, 0, 1, 0, ctypes.byref(_Overlapped())):
            code = ctypes.get_last_error()
            if code != _NOT_LOCKED:
                raise ctypes.WinError(code)
