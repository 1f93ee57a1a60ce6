/* SPDX-License-Identifier: Apache-2.0 */
#include "pressure.h"
#include "temp-root.h"

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int r;
        Pressure pressure;
    } cases[] = {
        {"some avg10=1.50 avg60=2.25 avg300=0.10 total=12345\nfull avg10=0.50 avg60=0.75 avg300=0.00 "
         "total=9\n",
         0,
         {1.5, 2.25, 0.5, 0.75, 12345}},
        {"some avg10=100.00 avg60=0.00 avg300=0.10 total=12345\n", 0, {100, 0, 0, 0, 12345}},
        {"full avg10=0.50 avg60=0.75 avg300=0.00 total=9\n", -EBADMSG, {0}},
        {"some avg10=1.50 avg60=2.2", -EBADMSG, {0}}, /* truncated */
        {"some avg10=1.50 avg60=2.25 avg300=0.10 total=1\nfull avg10=0.5", -EBADMSG, {0}},
        {"some avg10=1.50 avg60=2.25 avg300=0.10 total=-1\n", -EBADMSG, {0}},
        {"some avg10=1.50 avg60=2.25 avg300=0.10 sum=1\n", -EBADMSG, {0}},
        {"some avg10=100.01 avg60=0.00 avg300=0.10 total=1\n", -EBADMSG, {0}},
        {"some avg10=-1 avg60=0.00 avg300=0.10 total=1\n", -EBADMSG, {0}},
        {"some avg60=1.50 avg10=2.25 avg300=0.10 total=1\n", -EBADMSG, {0}},
        {"some avg10 avg60 avg300 total\n", -EBADMSG, {0}},
        {"something avg10=1.50 avg60=2.25 avg300=0.10 total=12345\n", -EBADMSG, {0}},
        {"", -EBADMSG, {0}},
        {"\n", -EBADMSG, {0}},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        Pressure pressure = {0};
        assert_int_equal(pressure_parse(text_of(cases[i].text), &pressure), cases[i].r);
        assert_float_equal(pressure.some_avg10, cases[i].pressure.some_avg10, 1e-9);
        assert_float_equal(pressure.some_avg60, cases[i].pressure.some_avg60, 1e-9);
        assert_float_equal(pressure.full_avg10, cases[i].pressure.full_avg10, 1e-9);
        assert_float_equal(pressure.full_avg60, cases[i].pressure.full_avg60, 1e-9);
        if (cases[i].r == 0)
            assert_int_equal(pressure.some_usec, cases[i].pressure.some_usec);
    }
}

/* So many digits that the number is out of range. */
static void test_endless_number(void **state)
{
    (void)state;
    char digits[1001];
    memset(digits, '9', sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    _cleanup_buffer_ Buffer text = {0};
    assert_int_equal(buffer_printf(&text, "some avg10=%s avg60=0.00 avg300=0.00 total=0\n", digits), 0);
    Pressure pressure;
    assert_int_equal(pressure_parse(text_of(buffer_text(&text)), &pressure), -EBADMSG);
}

static void test_read(void **state)
{
    (void)state;
    TempRoot temp = temp_root_make();
    temp_root_write(&temp, "proc/uptime", "");
    const Root *root = temp_root_open(&temp);
    Pressure pressure;
    assert_int_equal(pressure_read(root, "memory", &pressure), -ENOENT);
    temp_root_write(&temp, "proc/pressure/memory", "some avg10=3.00 avg60=2.00 avg300=1.00 total=5\n");
    assert_int_equal(pressure_read(root, "memory", &pressure), 0);
    assert_float_equal(pressure.some_avg10, 3, 1e-9);
    temp_root_free(&temp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_endless_number),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
