/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "fuzz.h"
#include "sites.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SiteWindow window;
    if (site_window_parse((Text){(const char *)data, size}, &window) < 0)
        return 0;
    if (window.n_sites > SITES_MOST || !(window.duration > 0) || window.stage >= SITE_STAGES_END)
        __builtin_trap();
    for (size_t i = 0; i < window.n_sites; i++)
        if (!memchr(window.sites[i].file, '\0', sizeof window.sites[i].file) ||
            !memchr(window.sites[i].what, '\0', sizeof window.sites[i].what))
            __builtin_trap();
    (void)site_window_grows(&window);
    (void)site_window_explained(&window);
    return 0;
}
