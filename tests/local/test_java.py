"""A JDK is found wherever it is, an old one is passed over, and what is missing is named."""

from __future__ import annotations

import pytest

from local.java import find_jdk, find_maven
from local.processes import StartError


def make_jdk(home, version, *, compiler=True, release=True):
    (home / "bin").mkdir(parents=True)
    programs = ["java", "javac"] if compiler else ["java"]
    for program in programs:
        path = home / "bin" / program
        path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        path.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="Nobody"\nJAVA_VERSION="{version}"\n')
    return home


def test_java_home_comes_first(tmp_path):
    chosen = make_jdk(tmp_path / "chosen", "21.0.4")
    make_jdk(tmp_path / "jvm" / "newer", "25.0.2")
    jdk = find_jdk({"JAVA_HOME": str(chosen)}, system_folders=(tmp_path / "jvm",))
    assert (jdk.home, jdk.version) == (chosen, 21)


def test_an_old_java_home_and_an_old_java_on_the_path_are_passed_over(tmp_path):
    old = make_jdk(tmp_path / "old", "17.0.15")
    fitting = make_jdk(tmp_path / "jvm" / "temurin-25", "25.0.2")
    env = {"JAVA_HOME": str(old), "PATH": str(old / "bin")}
    assert find_jdk(env, system_folders=(tmp_path / "jvm",)).home == fitting


def test_the_path_comes_before_the_system_folders_and_links_are_followed(tmp_path):
    real = make_jdk(tmp_path / "real", "22")
    make_jdk(tmp_path / "jvm" / "newer", "25")
    links = tmp_path / "bin"
    links.mkdir()
    (links / "javac").symlink_to(real / "bin" / "javac")
    assert find_jdk({"PATH": str(links)}, system_folders=(tmp_path / "jvm",)).home == real


def test_of_the_system_folders_the_newest_is_taken(tmp_path):
    for version in ("21.0.1", "25.0.2", "9.0.4", "1.8.0_392"):
        make_jdk(tmp_path / "jvm" / f"jdk-{version}", version)
    assert find_jdk({}, system_folders=(tmp_path / "jvm",)).version == 25


def test_a_macos_bundle_is_found_by_its_home(tmp_path):
    home = make_jdk(tmp_path / "jvm" / "temurin.jdk" / "Contents" / "Home", "25")
    assert find_jdk({}, system_folders=(tmp_path / "jvm",)).home == home


def test_a_runtime_without_compiler_is_no_jdk(tmp_path):
    make_jdk(tmp_path / "jvm" / "jre", "25", compiler=False)
    with pytest.raises(StartError, match="without javac"):
        find_jdk({}, system_folders=(tmp_path / "jvm",))


def test_a_jdk_without_release_file_is_asked(tmp_path):
    make_jdk(tmp_path / "jvm" / "plain", "24.0.1", release=False)
    assert find_jdk({}, system_folders=(tmp_path / "jvm",)).version == 24


def test_without_any_the_message_names_what_was_seen_and_what_to_install(tmp_path):
    old = make_jdk(tmp_path / "old", "17.0.15")
    with pytest.raises(StartError) as missing:
        find_jdk({"JAVA_HOME": str(old)}, system_folders=(tmp_path / "none",))
    assert f"{old} (Java 17)" in str(missing.value)
    assert "temurin-25-jdk" in str(missing.value)


def test_without_maven_the_message_names_what_to_install(tmp_path):
    with pytest.raises(StartError, match="apt-get install maven"):
        find_maven({"PATH": str(tmp_path)})
