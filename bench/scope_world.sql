-- A synthetic firm, made set by set. :n versions, :documents documents, :projects projects, :teams teams.
-- Six in ten versions lie in a local folder and follow their project; four in ten lie in an external system with an
-- ACL of two groups; one in twenty is seen at a second object. Project 0 is a large one.
insert into sources (id, name, kind) values
  (md5('local')::uuid, 'bench-local', 'local_fs'), (md5('external')::uuid, 'bench-external', 'external');

insert into projects (id, key, title)
  select md5('p' || n)::uuid, 'bench-' || n, 'Akte ' || n from generate_series(0, :projects - 1) n;

insert into documents (id, project_id, title)
  select md5('d' || n)::uuid, md5('p' || case when n % 50 = 0 then 0 else n % :projects end)::uuid, 'Schreiben ' || n
  from generate_series(0, :documents - 1) n;

insert into document_versions (id, document_id, sha256, title, mime, size_bytes)
  select md5('v' || n)::uuid, md5('d' || n % :documents)::uuid, md5('h' || n), 'Schreiben', 'text/plain', 1
  from generate_series(0, :n - 1) n;

insert into source_objects (id, source_id, external_id, path, name, acl_state)
  select md5('o' || n)::uuid, md5(case when n % 10 < 6 then 'local' else 'external' end)::uuid, 'o' || n, 'o' || n, 'o',
         case when n % 10 < 6 then 'unknown' else 'known' end
  from generate_series(0, :n + :n / 20 - 1) n;

insert into version_sources (version_id, source_object_id)
  select md5('v' || n % :n)::uuid, md5('o' || n)::uuid from generate_series(0, :n + :n / 20 - 1) n;

insert into project_grants (project_id, principal, effect)
  select md5('p' || n)::uuid, 'group:team-' || t, 'allow'
  from generate_series(0, :projects - 1) n, unnest(array[n % :teams, (n * 7 + 1) % :teams]) t
  on conflict do nothing;

insert into project_grants (project_id, principal, effect)
  select md5('p' || n)::uuid, 'group:wall-' || n % 5, 'deny' from generate_series(3, :projects - 1, 40) n;

insert into document_grants (document_id, principal, effect)
  select md5('d' || n)::uuid, 'group:wall-' || n % 5, 'deny' from generate_series(7, :documents - 1, 500) n;

insert into source_object_grants (source_object_id, principal, effect)
  select md5('o' || n)::uuid, 'group:src.' || md5('external')::uuid || '.g-' || t, 'allow'
  from generate_series(0, :n + :n / 20 - 1) n, unnest(array[n % :teams, (n * 7 + 1) % :teams]) t
  where n % 10 >= 6
  on conflict do nothing;

insert into source_group_members (source_id, group_principal, member_principal)
  select md5('external')::uuid, 'group:src.' || md5('external')::uuid || '.g-' || n, 'user:bench@kanzlei.example'
  from generate_series(1, 16) n;

insert into principal_aliases (principal, alias) values ('user:bench', 'user:bench@kanzlei.example')
