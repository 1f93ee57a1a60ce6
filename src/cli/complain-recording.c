/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>

#include "cli-text.h"
#include "complain.h"

int recorder_complain(const char *name, const char *path, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    const char *file = buffer_text(&safe);
    switch (error) {
    case -EISDIR:
        return complain(EX_DATAERR, CLI_FILE_IS_DIRECTORY, name, file);
    case -EEXIST:
        return complain(EX_DATAERR, CLI_FILE_NO_RECORDING, name, file);
    case -ENOTEMPTY:
        return complain(EX_DATAERR, CLI_FILE_OLD_EXISTS, name, file);
    case -EBUSY:
        return complain(EX_DATAERR, CLI_FILE_BUSY, name, file);
    case -ENOENT:
        return path[0] == '\0' ? complain(EX_DATAERR, CLI_FILE_NO_NAME, name)
                               : complain(EX_DATAERR, CLI_FILE_NO_DIRECTORY, name, file);
    case -EOPNOTSUPP:
        return complain(EX_UNAVAILABLE, CLI_FILE_UNSUITABLE, name, file);
    case -EACCES:
    case -EPERM:
    case -EROFS:
        return complain(EX_NOPERM, CLI_FILE_DENIED, name, file, error_text(-error));
    case -ENOSPC:
    case -EDQUOT:
        return complain(EX_UNAVAILABLE, CLI_FILE_FAILED, name, file, error_text(-error));
    default:
        return complain(EX_DATAERR, CLI_FILE_FAILED, name, file, error_text(-error));
    }
}

void recorder_say_stopped(Recorder *recorder, const char *path)
{
    int error = recorder_take_error(recorder);
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    if (error == -ESTALE)
        complain(0, CLI_RECORDING_STOPPED_GONE, buffer_text(&safe));
    else if (error == -EBADMSG)
        complain(0, CLI_RECORDING_STOPPED_FOREIGN, buffer_text(&safe));
    else if (error < 0)
        complain(0, CLI_RECORDING_STOPPED, buffer_text(&safe), error_text(-error));
}

void recorder_say(Recorder *recorder, const char *path)
{
    struct stat st;
    RecorderStatus status = recorder_status(recorder);
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    const char *file = buffer_text(&safe);
    recorder_say_stopped(recorder, path);
    int r = recorder_save(recorder);
    if (r == -ETIMEDOUT)
        complain(0, CLI_RECORDING_HANGS, file);
    if (r < 0)
        return;
    if (status.lost > 0)
        complain(0, PLURAL(status.lost, CLI_RECORDING_LOST_ONE, CLI_RECORDING_LOST_MANY), file,
                 (unsigned long long)status.lost);
    if (status.error == -ESTALE || status.error == -EBADMSG)
        return; /* there is nothing left to read under this name */
    uint64_t samples = status.samples - MIN(status.lost, status.samples);
    complain(0,
             PLURAL(samples, PLURAL(status.processes, CLI_WROTE_ONE_ONE, CLI_WROTE_ONE_MANY),
                    PLURAL(status.processes, CLI_WROTE_MANY_ONE, CLI_WROTE_MANY_MANY)),
             (unsigned long long)samples, (unsigned long long)status.processes, file,
             SIZE_TEXT(stat(path, &st) == 0 ? (uint64_t)st.st_size : U64_UNKNOWN), file);
}

static int recording_complain(const char *name, const char *path, int error)
{
    _cleanup_buffer_ Buffer safe = {0};
    (void)text_escape(text_of(path), &safe);
    const char *file = buffer_text(&safe);
    switch (error) {
    case -ENOMEM:
        return complain(EX_SOFTWARE, CLI_OUT_OF_MEMORY);
    case -EACCES:
    case -EPERM:
        return complain(EX_NOPERM, CLI_READ_DENIED, name, file, error_text(-error));
    case -EPROTO:
        return complain(EX_DATAERR, CLI_READ_LATER, name, file);
    case -EBADMSG:
        return complain(EX_DATAERR, CLI_READ_DAMAGED, name, file);
    case -ENODATA:
        return complain(EX_DATAERR, CLI_READ_EMPTY, name, file, file);
    case -EROFS:
        return complain(EX_DATAERR, CLI_READ_UNFINISHED, name, file, file);
    default:
        return complain(EX_DATAERR, CLI_READ_FAILED, name, file, error_text(-error));
    }
}

int recording_take(const char *name, const char *path, History *ret)
{
    struct stat st;
    History history = {0};
    int r = stat(path, &st) < 0    ? -errno
            : S_ISDIR(st.st_mode)  ? -EISDIR
            : !S_ISREG(st.st_mode) ? -EBADMSG
            : st.st_size == 0      ? -ENODATA
                                   : recording_read(path, &history);
    if (r >= 0 && history.series.n == 0) {
        history_free(&history);
        r = -ENODATA;
    }
    if (r < 0)
        return recording_complain(name, path, r);
    *ret = history;
    return EX_OK;
}
